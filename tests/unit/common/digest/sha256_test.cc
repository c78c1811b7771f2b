#include "common/digest/sha256.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

absl::Span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Source: FIPS 180-2, appendix B, and its empty message.
TEST(Sha256, PublishedMessages_HaveThePublishedDigests) {
  EXPECT_EQ(Sha256::Of({}).Hex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256::Of(BytesOf("abc")).Hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256::Of(BytesOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")).Hex(),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, BytesInPieces_DigestAsInOne) {
  Sha256 hasher;
  hasher.Update("a");
  hasher.Update(BytesOf("bc"));
  EXPECT_EQ(hasher.Finish(), Sha256::Of(BytesOf("abc")));
  EXPECT_EQ(hasher.Finish(), Sha256::Of({})) << "starts anew";
  hasher.UpdateInt(0x0807060504030201);
  EXPECT_EQ(hasher.Finish(), Sha256::Of(BytesOf("\x01\x02\x03\x04\x05\x06\x07\x08")));
}

TEST(Sha256Digest, HexAndRaw_ComeBack) {
  const Sha256Digest digest = Sha256::Of(BytesOf("abc"));
  EXPECT_EQ(Sha256Digest::FromHex(digest.Hex()), digest);
  EXPECT_EQ(Sha256Digest::FromRaw(digest.Raw()), digest);
}

TEST(Sha256Digest, AnythingElse_IsNone) {
  const std::string hex = Sha256Digest().Hex();
  EXPECT_FALSE(Sha256Digest::FromHex(""));
  EXPECT_FALSE(Sha256Digest::FromHex(hex.substr(1)));
  EXPECT_FALSE(Sha256Digest::FromHex(hex + "0"));
  EXPECT_FALSE(Sha256Digest::FromHex("g" + hex.substr(1)));
  EXPECT_FALSE(Sha256Digest::FromHex("A" + hex.substr(1)));
  EXPECT_FALSE(Sha256Digest::FromRaw(std::string(31, 'x')));
  EXPECT_FALSE(Sha256Digest::FromRaw(std::string(33, 'x')));
}

}  // namespace
}  // namespace weft
