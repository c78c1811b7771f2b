#include "worker/joiner.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/transport/own_address.h"

namespace weft {
namespace {

using std::chrono::milliseconds;

// Between attempts that failed.
constexpr milliseconds kFirstPause{500};
constexpr milliseconds kLastPause{5000};
// So often in a lease: two may get lost.
constexpr int kJoinsPerLease = 3;
constexpr milliseconds kShortestLease{300};
constexpr milliseconds kLongestLease{3600 * 1000};
// The same complaint again.
constexpr std::chrono::seconds kComplaintPeriod{60};
constexpr std::chrono::seconds kFarewellTime{1};

}  // namespace

absl::StatusOr<std::unique_ptr<Joiner>> Joiner::Start(JoinerOptions options, Logger& logger) {
  ASSIGN_OR_RETURN(std::unique_ptr<JoinToken> token, JoinToken::Open(options.token_file, &logger));
  JoinClientOptions client_options;
  client_options.coordinator = options.coordinator;
  client_options.security = options.security;
  ASSIGN_OR_RETURN(std::unique_ptr<JoinClient> client, JoinClient::Create(client_options));
  auto joiner =
      absl::WrapUnique(new Joiner(std::move(options), std::move(token), std::move(client), logger));
  ASSIGN_OR_RETURN(joiner->thread_, StartThread([raw = joiner.get()] { raw->Run(); }));
  return joiner;
}

Joiner::~Joiner() {
  Leave();
  {
    const Clock::TimePoint deadline = clock_.Now() + kFarewellTime;
    MutexLock lock(mutex_);
    while (!over_ && changed_.WaitUntil(mutex_, deadline)) {
    }
  }
  client_->Cancel();
  if (thread_.joinable()) thread_.join();
}

void Joiner::Leave() {
  MutexLock lock(mutex_);
  leaving_ = true;
  changed_.NotifyAll();
}

bool Joiner::joined() const {
  MutexLock lock(mutex_);
  return joined_;
}

absl::StatusOr<milliseconds> Joiner::JoinOnce(bool leaving) {
  JoinClaim claim = options_.claim;
  claim.leaving = leaving;
  HostAddress own = options_.own;
  if (own.host.empty()) {
    ASSIGN_OR_RETURN(own.host, OwnAddressTowards(options_.coordinator.host));
  }
  address_ = own.Text();
  claim.address = address_;
  return client_->Join(token_->Key(), claim);
}

void Joiner::Report(const absl::Status& status) {
  const std::string coordinator = options_.coordinator.Text();
  bool before = false;
  {
    MutexLock lock(mutex_);
    before = joined_;
    joined_ = status.ok();
  }
  if (status.ok()) {
    complaint_.clear();
    if (before) return;
    return logger_.Info(StdView(absl::StrCat("joined ", coordinator, " as ", address_)));
  }
  const Clock::TimePoint now = clock_.Now();
  if (status.message() == complaint_ && now < complained_ + kComplaintPeriod) return;
  complaint_ = std::string(status.message());
  complained_ = now;
  logger_.Warning(
      StdView(absl::StrCat("cannot join ", coordinator, ": ", complaint_, "; it is tried again")));
}

void Joiner::Run() {
  milliseconds pause = kFirstPause;
  while (true) {
    const absl::StatusOr<milliseconds> lease = JoinOnce(/*leaving=*/false);
    Report(lease.status());
    Clock::TimePoint next = clock_.Now();
    if (lease.ok()) {
      next += std::clamp(*lease, kShortestLease, kLongestLease) / kJoinsPerLease;
      pause = kFirstPause;
    } else {
      next += pause;
      pause = std::min(2 * pause, kLastPause);
    }
    MutexLock lock(mutex_);
    while (!leaving_ && changed_.WaitUntil(mutex_, next)) {
    }
    if (leaving_) break;
  }
  if (joined()) JoinOnce(/*leaving=*/true).IgnoreError();  // else its lease ends
  MutexLock lock(mutex_);
  joined_ = false;
  over_ = true;
  changed_.NotifyAll();
}

}  // namespace weft
