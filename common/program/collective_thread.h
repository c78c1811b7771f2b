// Performs collectives of one device's stream beside it, in the order in which they are begun.
#pragma once

#include <deque>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/program/collective_runner.h"

namespace weft {

// All functions are called by the stream's thread alone. The thread of its own begins with the
// first collective: most devices never need it.
class CollectiveThread {
 public:
  // The channels outlive it.
  CollectiveThread(int32_t device, const CollectiveChannels& channels)
      : runner_(device, channels) {}
  // Nothing is under way.
  ~CollectiveThread();

  // Begins behind those that are under way. `collective`, the step and the vector live until Finish
  // or Drain, and nobody else touches the vector. Errors: RESOURCE_EXHAUSTED for a thread.
  absl::Status Begin(const Step& step, const PreparedCollective& collective,
                     absl::Span<float> vector);
  // Waits for one that was begun and not yet finished, whatever its place in the order, and returns
  // its end: as CollectiveRunner::Run.
  absl::Status Finish(const PreparedCollective& collective);
  // Waits for all that were begun. They end soon once their step was stopped.
  void Drain();
  bool idle() const { return begun_ == 0; }

 private:
  struct Task {
    const Step* step = nullptr;
    const PreparedCollective* collective = nullptr;
    absl::Span<float> vector;
    bool done = false;
    absl::Status status;
  };

  void Run();
  // The first that has not run, or null.
  Task* NextLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  CollectiveRunner runner_;
  size_t begun_ = 0;  // and not finished

  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);  // as they were begun; stay where they are
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace weft
