// The fixed headers of the messages between two ports over UCX, little-endian. Everything here came
// from outside: decoding checks lengths and constants and nothing else; what the numbers mean is
// the reader's to check.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/types/span.h"
#include "common/transport/message_port.h"
#include "common/transport/peer_proof.h"

namespace weft {

// Active message ids. A connection begins with hello, challenge, proof (peer_proof.h).
inline constexpr unsigned kHelloMessage = 17;      // the first from whoever connects; a Hello
inline constexpr unsigned kRefusalMessage = 18;    // in place of any of them; a Refusal
inline constexpr unsigned kDataMessage = 19;       // header: a MessageHeader; data: the payload
inline constexpr unsigned kChallengeMessage = 20;  // the answer to a hello; a Challenge
inline constexpr unsigned kProofMessage = 21;      // the answer to a challenge; a PeerMac

struct Hello {
  uint64_t session = 0;
  int32_t from = 0;
  int32_t to = 0;
  PeerNonce nonce = {};
  AddressDigest address = {};  // of the port of whoever connects
};

struct Challenge {
  PeerNonce nonce = {};
  PeerMac proof = {};  // of the listener
};

enum class Refusal : uint32_t {
  kNotExpected = 1,  // no such peer, or it is there already
  kNoHello = 2,      // something else came first
  kWrongProof = 3,
  kTooLate = 4,  // no proof in time
  kTooMany = 5,  // that have not proved themselves
  kNoMemory = 6,
};
// "the proof of the session's key is wrong", for people.
std::string_view RefusalText(Refusal refusal);

inline constexpr size_t kHelloBytes = 88;
inline constexpr size_t kChallengeBytes = 72;
inline constexpr size_t kProofBytes = 40;
inline constexpr size_t kRefusalBytes = 12;
inline constexpr size_t kDataHeaderBytes = 24;

std::array<uint8_t, kHelloBytes> EncodeHello(const Hello& hello);
std::array<uint8_t, kChallengeBytes> EncodeChallenge(const Challenge& challenge);
std::array<uint8_t, kProofBytes> EncodeProof(const PeerMac& proof);
std::array<uint8_t, kRefusalBytes> EncodeRefusal(Refusal refusal);
std::array<uint8_t, kDataHeaderBytes> EncodeDataHeader(const MessageHeader& header);

// Nothing where the bytes are not one, or one of another version of this protocol.
std::optional<Hello> DecodeHello(absl::Span<const uint8_t> bytes);
std::optional<Challenge> DecodeChallenge(absl::Span<const uint8_t> bytes);
std::optional<PeerMac> DecodeProof(absl::Span<const uint8_t> bytes);
std::optional<Refusal> DecodeRefusal(absl::Span<const uint8_t> bytes);
std::optional<MessageHeader> DecodeDataHeader(absl::Span<const uint8_t> bytes);

}  // namespace weft
