// What the clients' threads and the engine's thread share: requests that wait, the word to stop,
// and the state that the engine shows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "coordinator/serving/admission_queue.h"
#include "coordinator/serving/sequence.h"
#include "coordinator/serving/serving_state.h"

namespace weft {

class ServingInbox {
 public:
  explicit ServingInbox(int64_t most_waiting) : queue_(most_waiting) {}

  // --- Any thread ---

  // Errors: RESOURCE_EXHAUSTED if too many wait; UNAVAILABLE after Drain or Stop.
  absl::Status Add(std::unique_ptr<Sequence> sequence);
  // The engine looks at once whether something has changed.
  void Wake();
  // Refuses what comes from now on; true when nothing is under way, false at the deadline.
  bool Drain(Clock::TimePoint deadline);
  void Stop();
  ServingState state() const;

  // --- The engine's thread ---

  // Returns at once if something waits in the queue, else when woken, or at `until`. False after
  // Stop.
  bool Await(Clock::TimePoint until);
  // Waits whatever is in the queue. False after Stop.
  bool Pause(Clock::TimePoint until);
  // The next request if `fits` says so, else null.
  std::unique_ptr<Sequence> Take(absl::FunctionRef<bool(const Sequence&)> fits);
  std::vector<std::unique_ptr<Sequence>> TakeIf(absl::FunctionRef<bool(const Sequence&)> wanted);
  bool stopped() const;
  // `busy`: the engine has requests of its own. The numbers of requests taken, refused and waiting
  // are the inbox's.
  void Show(const ServingState& state, bool busy);

 private:
  mutable Mutex mutex_;
  CondVar for_engine_;
  CondVar for_drain_;
  AdmissionQueue queue_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  ServingState state_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
