// How two processes of a session prove to each other, on a connection of the data plane, that both
// were given the session's key: HMAC-SHA256 over fresh random numbers of both. Neither the key nor
// the pair's token travels there.
//
//   connector -> listener   hello: numbers, nonce, digest of the connector's port address
//   listener -> connector   challenge: nonce, proof of the listener
//   connector -> listener   proof of the connector
//
// Nothing else is taken from a side before its proof. It keeps strangers out; it does not protect
// what follows from somebody who can change bytes on the wire.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

// A secret that the control plane gives to both sides of one connection, beside the session's key.
using PeerToken = std::array<uint8_t, 16>;
using PeerNonce = std::array<uint8_t, 32>;
using PeerMac = std::array<uint8_t, 32>;        // HMAC-SHA256
using AddressDigest = std::array<uint8_t, 32>;  // SHA-256 of the text of a port's address

// 32 random bytes that all processes of a session know and nobody else. Overwritten when it ends;
// has no text form.
class SessionKey {
 public:
  static constexpr size_t kBytes = 32;

  // All zero, for ports of which nobody outside the process can know.
  SessionKey() = default;
  ~SessionKey();
  SessionKey(const SessionKey&) = default;
  SessionKey& operator=(const SessionKey&) = default;

  // INTERNAL where the system has no random bytes.
  static absl::StatusOr<SessionKey> New();
  // Errors: INVALID_ARGUMENT unless there are 32 bytes.
  static absl::StatusOr<SessionKey> FromBytes(std::string_view bytes);

  // For the control plane and proofs only.
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  // In a time that does not tell where they differ.
  bool Equals(const SessionKey& other) const;

 private:
  std::array<uint8_t, kBytes> bytes_ = {};
};

// Whom a proof is of. A proof of one side is none of the other.
enum class PeerSide : uint8_t { kConnector, kListener };

// What both sides know of a connection once each has the other's nonce.
struct PeerHandshake {
  uint64_t session = 0;
  int32_t connector = -1;  // numbers in the session
  int32_t listener = -1;
  PeerToken token = {};
  PeerNonce connector_nonce = {};
  PeerNonce listener_nonce = {};
  AddressDigest connector_address = {};
  AddressDigest listener_address = {};
};

// The bytes of any of these.
template <size_t N>
std::string_view ViewOf(const std::array<uint8_t, N>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), N};
}

// INTERNAL where the system has no random bytes.
absl::StatusOr<PeerToken> NewPeerToken();
absl::StatusOr<PeerNonce> NewPeerNonce();
AddressDigest DigestOfAddress(std::string_view port_address);

// INTERNAL where the library has no memory.
absl::StatusOr<PeerMac> ProveSide(const SessionKey& key, PeerSide side,
                                  const PeerHandshake& handshake);
// Whether `proof` is that of `side`; takes as long whatever its bytes are.
bool IsProofOf(const SessionKey& key, PeerSide side, const PeerHandshake& handshake,
               absl::Span<const uint8_t> proof);

}  // namespace weft
