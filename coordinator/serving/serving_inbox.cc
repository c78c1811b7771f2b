#include "coordinator/serving/serving_inbox.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {

absl::Status ServingInbox::Add(std::unique_ptr<Sequence> sequence) {
  MutexLock lock(mutex_);
  if (draining_ || stopped_) return absl::UnavailableError("the server is shutting down");
  if (!queue_.Add(sequence)) {
    ++refused_;
    return absl::ResourceExhaustedError(
        absl::StrCat(queue_.size(), " requests wait already; try again later"));
  }
  ++taken_;
  for_engine_.NotifyOne();
  return absl::OkStatus();
}

void ServingInbox::Wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  for_engine_.NotifyOne();
}

bool ServingInbox::Drain(Clock::TimePoint deadline) {
  MutexLock lock(mutex_);
  draining_ = true;
  for_engine_.NotifyOne();
  while (busy_ || queue_.size() > 0) {
    if (stopped_ || !for_drain_.WaitUntil(mutex_, deadline)) return !busy_ && queue_.size() == 0;
  }
  return true;
}

void ServingInbox::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  for_engine_.NotifyOne();
  for_drain_.NotifyAll();
}

ServingState ServingInbox::state() const {
  MutexLock lock(mutex_);
  ServingState state = state_;
  state.waiting += queue_.size();
  state.counters.requests = taken_;
  state.counters.refused = refused_;
  return state;
}

bool ServingInbox::Await(Clock::TimePoint until) {
  MutexLock lock(mutex_);
  while (!stopped_ && !woken_ && queue_.size() == 0) {
    if (!for_engine_.WaitUntil(mutex_, until)) break;
  }
  woken_ = false;
  return !stopped_;
}

bool ServingInbox::Pause(Clock::TimePoint until) {
  MutexLock lock(mutex_);
  while (!stopped_ && !woken_) {
    if (!for_engine_.WaitUntil(mutex_, until)) break;
  }
  woken_ = false;
  return !stopped_;
}

std::unique_ptr<Sequence> ServingInbox::Take(absl::FunctionRef<bool(const Sequence&)> fits) {
  MutexLock lock(mutex_);
  const Sequence* next = queue_.Next();
  if (next == nullptr || !fits(*next)) return nullptr;
  busy_ = true;
  return queue_.Take();
}

std::vector<std::unique_ptr<Sequence>> ServingInbox::TakeIf(
    absl::FunctionRef<bool(const Sequence&)> wanted) {
  MutexLock lock(mutex_);
  std::vector<std::unique_ptr<Sequence>> taken = queue_.TakeIf(wanted);
  if (!taken.empty()) busy_ = true;
  return taken;
}

bool ServingInbox::stopped() const {
  MutexLock lock(mutex_);
  return stopped_;
}

void ServingInbox::Show(const ServingState& state, bool busy) {
  MutexLock lock(mutex_);
  state_ = state;
  busy_ = busy;
  if (!busy && queue_.size() == 0) for_drain_.NotifyAll();
}

}  // namespace weft
