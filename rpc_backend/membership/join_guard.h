// Whom a coordinator lets join: those whose proof is right, fresh, and was not seen before.
//
// A challenge is a number that the guard can recognize without having kept it: time, random bytes,
// and a MAC over both with a key of its own. So strangers who ask for many take no memory. Only
// proofs that were right are remembered, as long as their challenges are good.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "rpc_backend/membership/join_claim.h"

namespace weft {

// How long a challenge is good.
inline constexpr std::chrono::seconds kChallengeTime{10};
// Proofs that are remembered.
inline constexpr size_t kMostProofs = 4096;

// Any thread may call.
class JoinGuard {
 public:
  // `clock` outlives it. INTERNAL where the system has no random bytes.
  static absl::StatusOr<std::unique_ptr<JoinGuard>> Create(std::unique_ptr<JoinToken> token,
                                                           const Clock& clock);

  // INTERNAL likewise.
  absl::StatusOr<PeerNonce> Challenge();

  // The coordinator's proof for the worker. Errors: PERMISSION_DENIED for a proof that was replayed
  // or is of another token; FAILED_PRECONDITION for a challenge that is none of this guard's, as
  // that of a coordinator that was started again; RESOURCE_EXHAUSTED for too many.
  absl::StatusOr<PeerMac> Check(const JoinAttempt& attempt, std::string_view proof);

 private:
  JoinGuard(std::unique_ptr<JoinToken> token, const SessionKey& key, const Clock& clock)
      : token_(std::move(token)), key_(key), clock_(clock), start_(clock.Now()) {}
  uint64_t Milliseconds() const;
  absl::StatusOr<PeerNonce> Seal(uint64_t time, std::string_view random) const;
  // Of its challenges: OK if it is one, and good.
  absl::Status CheckChallenge(const PeerNonce& challenge) const;
  absl::Status Remember(const PeerNonce& challenge);

  const std::unique_ptr<JoinToken> token_;
  const SessionKey key_;  // of challenges
  const Clock& clock_;
  const Clock::TimePoint start_;
  Mutex mutex_;
  // Of proofs that were taken, oldest first.
  std::deque<std::pair<Clock::TimePoint, std::string>> order_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<std::string> taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
