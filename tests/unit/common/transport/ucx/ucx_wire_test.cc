#include "common/transport/ucx/ucx_wire.h"

#include <gtest/gtest.h>

#include <limits>

namespace weft {
namespace {

TEST(UcxWireTest, Hello_RoundTrip_SameFields) {
  Hello hello{.session = 0x123456789abcdef0, .from = 7, .to = -3, .token = {}};
  for (size_t i = 0; i < hello.token.size(); ++i) hello.token[i] = static_cast<uint8_t>(i * 17);
  const auto bytes = EncodeHello(hello);
  const std::optional<Hello> decoded = DecodeHello(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->session, hello.session);
  EXPECT_EQ(decoded->from, 7);
  EXPECT_EQ(decoded->to, -3);
  EXPECT_TRUE(SameToken(decoded->token, hello.token));
  hello.token[15] ^= 1;
  EXPECT_FALSE(SameToken(decoded->token, hello.token));
}

TEST(UcxWireTest, Hello_OtherLengthMagicOrVersion_None) {
  const auto good = EncodeHello({});
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(DecodeHello(absl::MakeConstSpan(good).subspan(0, size)).has_value());
  }
  for (const size_t place : {0, 3, 4, 7}) {
    auto bad = good;
    bad[place] ^= 1;
    EXPECT_FALSE(DecodeHello(bad).has_value()) << place;
  }
}

TEST(UcxWireTest, Answer_KnownWordsOnly) {
  EXPECT_EQ(DecodeAnswer(EncodeAnswer(Answer::kWelcome)), Answer::kWelcome);
  EXPECT_EQ(DecodeAnswer(EncodeAnswer(Answer::kRefused)), Answer::kRefused);
  EXPECT_FALSE(DecodeAnswer(EncodeAnswer(static_cast<Answer>(0))).has_value());
  EXPECT_FALSE(DecodeAnswer(EncodeAnswer(static_cast<Answer>(3))).has_value());
  EXPECT_FALSE(DecodeAnswer({}).has_value());
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
