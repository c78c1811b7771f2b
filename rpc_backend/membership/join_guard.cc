#include "rpc_backend/membership/join_guard.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/equal_secrets.h"
#include "common/base/status_macros.h"
#include "common/base/system_random.h"

namespace weft {
namespace {

// A challenge: time, random bytes, the beginning of the MAC.
constexpr size_t kTimeBytes = 8;
constexpr size_t kRandomBytes = 8;
constexpr size_t kMacBytes = sizeof(PeerNonce) - kTimeBytes - kRandomBytes;

uint64_t TimeOf(const PeerNonce& challenge) {
  uint64_t time = 0;
  for (size_t i = 0; i < kTimeBytes; ++i) time = time << 8 | challenge[i];
  return time;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JoinGuard>> JoinGuard::Create(std::unique_ptr<JoinToken> token,
                                                             const Clock& clock) {
  ASSIGN_OR_RETURN(const SessionKey key, SessionKey::New());
  return absl::WrapUnique(new JoinGuard(std::move(token), key, clock));
}

uint64_t JoinGuard::Milliseconds() const {
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.Now() - start_);
  return static_cast<uint64_t>(since.count());
}

absl::StatusOr<PeerNonce> JoinGuard::Seal(uint64_t time, std::string_view random) const {
  PeerHandshake sealed;
  sealed.session = time;
  std::copy_n(random.begin(), kRandomBytes, sealed.token.begin());
  ASSIGN_OR_RETURN(const PeerMac mac, ProveSide(key_, PeerSide::kListener, sealed));
  PeerNonce challenge = {};
  for (size_t i = 0; i < kTimeBytes; ++i) {
    challenge[i] = static_cast<uint8_t>(time >> (8 * (kTimeBytes - 1 - i)));
  }
  auto* const rest = std::copy_n(random.begin(), kRandomBytes, challenge.begin() + kTimeBytes);
  std::copy_n(mac.begin(), kMacBytes, rest);
  return challenge;
}

absl::StatusOr<PeerNonce> JoinGuard::Challenge() {
  std::array<uint8_t, kRandomBytes> random = {};
  RETURN_IF_ERROR(FillWithSystemRandom(absl::MakeSpan(random)));
  return Seal(Milliseconds(), ViewOf(random));
}

absl::Status JoinGuard::CheckChallenge(const PeerNonce& challenge) const {
  const uint64_t time = TimeOf(challenge);
  ASSIGN_OR_RETURN(const PeerNonce own,
                   Seal(time, ViewOf(challenge).substr(kTimeBytes, kRandomBytes)));
  if (!EqualSecrets(ViewOf(own), ViewOf(challenge))) {
    return absl::FailedPreconditionError(
        "its challenge is not of this coordinator, which may have been started again since");
  }
  const uint64_t age = Milliseconds() - time;
  if (age <= static_cast<uint64_t>(std::chrono::milliseconds(kChallengeTime).count())) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("its challenge is ", age / 1000, " s old, and good for ", kChallengeTime.count(),
                   " s: the join was replayed, or the network is very slow"));
}

absl::Status JoinGuard::Remember(const PeerNonce& challenge) {
  const Clock::TimePoint now = clock_.Now();
  MutexLock lock(mutex_);
  while (!order_.empty() && order_.front().first < now) {
    taken_.erase(order_.front().second);
    order_.pop_front();
  }
  std::string bytes(ViewOf(challenge));
  if (taken_.contains(bytes)) {
    return absl::PermissionDeniedError(
        "it was replayed: a join with this challenge was taken before, and each is good for one");
  }
  if (taken_.size() >= kMostProofs) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", kMostProofs, " joins in ", kChallengeTime.count(), " s"));
  }
  taken_.insert(bytes);
  order_.emplace_back(now + kChallengeTime, std::move(bytes));
  return absl::OkStatus();
}

absl::StatusOr<PeerMac> JoinGuard::Check(const JoinAttempt& attempt, std::string_view proof) {
  RETURN_IF_ERROR(CheckChallenge(attempt.challenge));
  const SessionKey key = token_->Key();
  if (!IsJoinProof(key, PeerSide::kConnector, attempt, proof)) {
    return absl::PermissionDeniedError(
        "its proof is wrong: it has another token than this coordinator (--join-token-file)");
  }
  RETURN_IF_ERROR(Remember(attempt.challenge));
  return ProveJoin(key, PeerSide::kListener, attempt);
}

}  // namespace weft
