#include "common/transport/peer_proof.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

SessionKey NewKey() { return *SessionKey::New(); }

PeerHandshake Sample() {
  return {.session = 5,
          .connector = 2,
          .listener = 1,
          .token = *NewPeerToken(),
          .connector_nonce = *NewPeerNonce(),
          .listener_nonce = *NewPeerNonce(),
          .connector_address = DigestOfAddress("a"),
          .listener_address = DigestOfAddress("b")};
}

// HMAC-SHA256 of known bytes, computed with Python's hmac: label, numbers lowest byte first, then
// token, nonces and addresses.
TEST(PeerProofTest, Proof_OfKnownHandshake_IsThatOfAnotherImplementation) {
  std::string bytes;
  for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<char>(i));
  PeerHandshake handshake{.session = 0x0102030405060708, .connector = 3, .listener = 1};
  handshake.token.fill(0x11);
  handshake.connector_nonce.fill(0x22);
  handshake.listener_nonce.fill(0x33);
  handshake.connector_address = DigestOfAddress("ucx1 host=a remote=10.0.0.1:7");
  handshake.listener_address = DigestOfAddress("ucx1 host=b remote=10.0.0.2:8");
  ASSERT_OK_AND_ASSIGN(const SessionKey key, SessionKey::FromBytes(bytes));
  const auto hex = [](const PeerMac& mac) {
    std::string text;
    for (const uint8_t byte : mac) {
      text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    }
    return text;
  };
  ASSERT_OK_AND_ASSIGN(const PeerMac connector, ProveSide(key, PeerSide::kConnector, handshake));
  ASSERT_OK_AND_ASSIGN(const PeerMac listener, ProveSide(key, PeerSide::kListener, handshake));
  EXPECT_EQ(hex(connector), "23aa78a0423a1b755f33471562d47f2dd7c531a1c4ac8fa9f3febe4fd84f2793");
  EXPECT_EQ(hex(listener), "9236bf34a6c99a35eac4d798427ba50e87c2b786bcab6ffac618fc340ec78c46");
}

TEST(PeerProofTest, Proof_OfEachSide_HoldsForThatSideOnly) {
  const SessionKey key = NewKey();
  const PeerHandshake handshake = Sample();
  for (const auto side : {PeerSide::kConnector, PeerSide::kListener}) {
    const auto other = side == PeerSide::kConnector ? PeerSide::kListener : PeerSide::kConnector;
    ASSERT_OK_AND_ASSIGN(const PeerMac proof, ProveSide(key, side, handshake));
    EXPECT_TRUE(IsProofOf(key, side, handshake, proof));
    // Reflected to its maker it is worthless.
    EXPECT_FALSE(IsProofOf(key, other, handshake, proof));
    EXPECT_FALSE(IsProofOf(NewKey(), side, handshake, proof));
    EXPECT_FALSE(IsProofOf(key, side, handshake, absl::MakeConstSpan(proof).subspan(0, 31)));
    EXPECT_FALSE(IsProofOf(key, side, handshake, {}));
    for (size_t i = 0; i < proof.size(); ++i) {
      PeerMac bad = proof;
      bad[i] ^= 1;
      EXPECT_FALSE(IsProofOf(key, side, handshake, bad)) << i;
    }
  }
}

// Also where the two sides change places: who reflects a whole handshake gains nothing.
TEST(PeerProofTest, Proof_OfAnyOtherHandshake_IsWrong) {
  const SessionKey key = NewKey();
  const PeerHandshake handshake = Sample();
  const std::vector<std::function<void(PeerHandshake&)>> changes = {
      [](PeerHandshake& h) { ++h.session; },
      [](PeerHandshake& h) { ++h.connector; },
      [](PeerHandshake& h) { ++h.listener; },
      [](PeerHandshake& h) { h.token[15] ^= 1; },
      [](PeerHandshake& h) { h.connector_nonce = *NewPeerNonce(); },
      [](PeerHandshake& h) { h.listener_nonce = *NewPeerNonce(); },
      [](PeerHandshake& h) { h.connector_address = DigestOfAddress("c"); },
      [](PeerHandshake& h) { h.listener_address = DigestOfAddress("c"); },
      [](PeerHandshake& h) { std::swap(h.connector, h.listener); },
      [](PeerHandshake& h) { std::swap(h.connector_nonce, h.listener_nonce); },
      [](PeerHandshake& h) { std::swap(h.connector_address, h.listener_address); }};
  for (const auto side : {PeerSide::kConnector, PeerSide::kListener}) {
    ASSERT_OK_AND_ASSIGN(const PeerMac proof, ProveSide(key, side, handshake));
    for (size_t i = 0; i < changes.size(); ++i) {
      PeerHandshake other = handshake;
      changes[i](other);
      EXPECT_FALSE(IsProofOf(key, side, other, proof)) << i;
    }
  }
}

TEST(PeerProofTest, KeysNoncesAndTokens_NeverTheSameTwice) {
  std::set<std::string> keys;
  std::set<PeerNonce> nonces;
  std::set<PeerToken> tokens;
  for (int i = 0; i < 100; ++i) {
    keys.insert(std::string(NewKey().bytes()));
    nonces.insert(*NewPeerNonce());
    tokens.insert(*NewPeerToken());
  }
  EXPECT_EQ(keys.size(), 100u);
  EXPECT_EQ(nonces.size(), 100u);
  EXPECT_EQ(tokens.size(), 100u);
}

TEST(SessionKeyTest, FromBytes_ThirtyTwoOnly) {
  const SessionKey key = NewKey();
  ASSERT_OK_AND_ASSIGN(const SessionKey same, SessionKey::FromBytes(key.bytes()));
  EXPECT_TRUE(key.Equals(same));
  EXPECT_FALSE(key.Equals(NewKey()));
  for (const size_t size : {0, 16, 31, 33, 64}) {
    EXPECT_THAT(SessionKey::FromBytes(std::string(size, 'k')),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("32 bytes")));
  }
}

}  // namespace
}  // namespace weft
