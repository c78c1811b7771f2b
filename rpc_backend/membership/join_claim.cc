#include "rpc_backend/membership/join_claim.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "proto/membership.pb.h"
#include "rpc_backend/protocol/clean_text.h"
#include "rpc_backend/protocol/limits.h"
#include "rpc_backend/protocol/message_check.h"

namespace weft {
namespace {

// Keys of other uses are random, and this one is of no use elsewhere.
constexpr std::string_view kTokenLabel = "weft join token 1\n";
// In the place of a session's number.
constexpr uint64_t kJoins = 1;
constexpr uint64_t kLeaves = 2;

template <size_t N>
std::array<uint8_t, N> BytesOf(std::string_view text) {
  std::array<uint8_t, N> bytes = {};
  std::copy_n(text.begin(), std::min(N, text.size()), bytes.begin());
  return bytes;
}

// A join as a handshake of peers: the worker connects, the coordinator listens.
PeerHandshake HandshakeOf(const JoinAttempt& attempt) {
  const JoinClaim& claim = attempt.claim;
  PeerHandshake handshake;
  handshake.session = claim.leaving ? kLeaves : kJoins;
  handshake.token = BytesOf<sizeof(PeerToken)>(claim.incarnation);
  handshake.connector_nonce = attempt.nonce;
  handshake.listener_nonce = attempt.challenge;
  handshake.connector_address = DigestOfAddress(claim.address);
  // Neither has the byte between them.
  handshake.listener_address =
      DigestOfAddress(absl::StrCat(claim.host_identity, absl::string_view("\0", 1), claim.name));
  return handshake;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JoinToken>> JoinToken::Open(const std::string& path,
                                                           Logger* logger) {
  ASSIGN_OR_RETURN(std::unique_ptr<TokenFile> file,
                   TokenFile::Open(path, kLeastJoinTokenCharacters, logger));
  return absl::WrapUnique(new JoinToken(std::move(file)));
}

SessionKey JoinToken::KeyOf(std::string_view token) {
  const AddressDigest digest =
      DigestOfAddress(absl::StrCat(AbslView(kTokenLabel), AbslView(token)));
  const absl::StatusOr<SessionKey> key = SessionKey::FromBytes(ViewOf(digest));
  WEFT_CHECK(key.ok());  // both have 32 bytes
  return *key;
}

absl::StatusOr<PeerMac> ProveJoin(const SessionKey& key, PeerSide side,
                                  const JoinAttempt& attempt) {
  return ProveSide(key, side, HandshakeOf(attempt));
}

bool IsJoinProof(const SessionKey& key, PeerSide side, const JoinAttempt& attempt,
                 std::string_view proof) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(proof.data());
  return IsProofOf(key, side, HandshakeOf(attempt), {bytes, proof.size()});
}

void EncodeJoin(const JoinAttempt& attempt, const PeerMac& proof, proto::JoinRequest& message) {
  message.set_name(attempt.claim.name);
  message.set_address(attempt.claim.address);
  message.set_incarnation(attempt.claim.incarnation);
  message.set_host_identity(attempt.claim.host_identity);
  message.set_leaving(attempt.claim.leaving);
  message.set_nonce(std::string(ViewOf(attempt.nonce)));
  message.set_challenge(std::string(ViewOf(attempt.challenge)));
  message.set_proof(std::string(ViewOf(proof)));
}

absl::StatusOr<DecodedJoin> DecodeJoin(const proto::JoinRequest& message) {
  RETURN_IF_ERROR(CheckMessage(message));
  DecodedJoin join;
  join.attempt.claim = {.name = message.name(),
                        .address = message.address(),
                        .incarnation = message.incarnation(),
                        .host_identity = message.host_identity(),
                        .leaving = message.leaving()};
  join.attempt.nonce = BytesOf<sizeof(PeerNonce)>(message.nonce());
  join.attempt.challenge = BytesOf<sizeof(PeerNonce)>(message.challenge());
  join.proof = message.proof();
  return join;
}

}  // namespace weft
