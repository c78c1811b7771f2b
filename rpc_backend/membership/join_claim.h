// What a worker says of itself when it joins a coordinator, and how it proves that it has the token
// of both. The token itself does not travel, and a proof is good for one join of one worker: it is
// over all that is said, and over a challenge that the coordinator takes once (JoinGuard).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/token_file.h"
#include "common/transport/peer_proof.h"

namespace weft {

namespace proto {
class JoinRequest;
}

// Where coordinators listen for workers unless told otherwise.
inline constexpr int32_t kDefaultJoinPort = 7070;

// A token that people made up would be guessed from one proof that was overheard.
inline constexpr size_t kLeastJoinTokenCharacters = 20;

struct JoinClaim {
  std::string name;           // for people
  std::string address;        // "10.0.0.2:7000"
  std::string incarnation;    // 16 bytes
  std::string host_identity;  // of its machine
  bool leaving = false;
  friend bool operator==(const JoinClaim&, const JoinClaim&) = default;
};

// A claim with what makes its proof fresh.
struct JoinAttempt {
  JoinClaim claim;
  PeerNonce nonce = {};      // of the worker
  PeerNonce challenge = {};  // of the coordinator
};

// The secret that proofs are made with. Any thread may call.
class JoinToken {
 public:
  // `logger` (may be null), which outlives it, hears of a file that cannot be read any longer.
  // Errors: those of TokenFile.
  static absl::StatusOr<std::unique_ptr<JoinToken>> Open(const std::string& path,
                                                         Logger* logger = nullptr);
  // Of a token that is not in a file.
  static SessionKey KeyOf(std::string_view token);

  // As the file is now.
  SessionKey Key() { return KeyOf(file_->Token()); }

 private:
  explicit JoinToken(std::unique_ptr<TokenFile> file) : file_(std::move(file)) {}
  const std::unique_ptr<TokenFile> file_;
};

// kConnector: of the worker. INTERNAL where the library has no memory.
absl::StatusOr<PeerMac> ProveJoin(const SessionKey& key, PeerSide side, const JoinAttempt& attempt);
bool IsJoinProof(const SessionKey& key, PeerSide side, const JoinAttempt& attempt,
                 std::string_view proof);

void EncodeJoin(const JoinAttempt& attempt, const PeerMac& proof, proto::JoinRequest& message);
struct DecodedJoin {
  JoinAttempt attempt;
  std::string proof;
};
// Errors: those of CheckMessage.
absl::StatusOr<DecodedJoin> DecodeJoin(const proto::JoinRequest& message);

}  // namespace weft
