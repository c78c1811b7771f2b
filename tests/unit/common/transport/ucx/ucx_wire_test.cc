#include "common/transport/ucx/ucx_wire.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

namespace weft {
namespace {

template <size_t N>
std::array<uint8_t, N> Counted(int first) {
  std::array<uint8_t, N> bytes;
  for (size_t i = 0; i < N; ++i) bytes[i] = static_cast<uint8_t>(first + 7 * static_cast<int>(i));
  return bytes;
}

TEST(UcxWireTest, Hello_RoundTrip_SameFields) {
  const Hello hello{.session = 0x123456789abcdef0,
                    .from = 7,
                    .to = -3,
                    .nonce = Counted<32>(1),
                    .address = Counted<32>(2)};
  const std::optional<Hello> decoded = DecodeHello(EncodeHello(hello));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->session, hello.session);
  EXPECT_EQ(decoded->from, 7);
  EXPECT_EQ(decoded->to, -3);
  EXPECT_EQ(decoded->nonce, hello.nonce);
  EXPECT_EQ(decoded->address, hello.address);
}

TEST(UcxWireTest, ChallengeAndProof_RoundTrip_SameFields) {
  const Challenge challenge{.nonce = Counted<32>(3), .proof = Counted<32>(4)};
  const std::optional<Challenge> decoded = DecodeChallenge(EncodeChallenge(challenge));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->nonce, challenge.nonce);
  EXPECT_EQ(decoded->proof, challenge.proof);
  EXPECT_EQ(DecodeProof(EncodeProof(Counted<32>(5))), Counted<32>(5));
}

// Of every kind: what is shorter, of another length, magic or version is none.
template <typename Bytes, typename Decode>
void CheckMangled(const Bytes& good, Decode decode) {
  ASSERT_TRUE(decode(good).has_value());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(decode(absl::MakeConstSpan(good).subspan(0, size)).has_value());
  }
  std::vector<uint8_t> longer(good.begin(), good.end());
  longer.push_back(0);
  EXPECT_FALSE(decode(longer).has_value());
  for (const size_t place : {0, 3, 4, 7}) {
    auto bad = good;
    bad[place] ^= 1;
    EXPECT_FALSE(decode(bad).has_value()) << place;
  }
}

TEST(UcxWireTest, OtherLengthMagicOrVersion_None) {
  CheckMangled(EncodeHello({}), DecodeHello);
  CheckMangled(EncodeChallenge({}), DecodeChallenge);
  CheckMangled(EncodeProof({}), DecodeProof);
  CheckMangled(EncodeRefusal(Refusal::kTooLate), DecodeRefusal);
}

TEST(UcxWireTest, Refusal_KnownWordsOnly) {
  for (uint32_t word = 0; word < 20; ++word) {
    const auto refusal = static_cast<Refusal>(word);
    const bool known = word >= 1 && word <= 6;
    EXPECT_EQ(DecodeRefusal(EncodeRefusal(refusal)), known ? std::optional(refusal) : std::nullopt);
    EXPECT_EQ(RefusalText(refusal).empty(), !known);
  }
}

TEST(UcxWireTest, DataHeader_Extremes_RoundTrip) {
  for (const MessageHeader& header :
       {MessageHeader{}, MessageHeader{.epoch = ~0u,
                         .kind = 31,
                         .step = std::numeric_limits<int64_t>::max(),
                         .id = std::numeric_limits<int32_t>::min()}}) {
    const auto bytes = EncodeDataHeader(header);
    EXPECT_EQ(DecodeDataHeader(bytes), header);
    EXPECT_FALSE(DecodeDataHeader(absl::MakeConstSpan(bytes).subspan(1)).has_value());
  }
}

}  // namespace
}  // namespace weft
