// The threads that run steps: one per device, each with its backend.
//
// The steps of a session run one after another in launch order, and a step starts on a device once
// the step before it has finished on all. Within a step every device first applies the updates of
// page tables and the page copies, then uploads its inputs, runs its stream and fetches its
// outputs. A thread sleeps on a condition variable whenever it has nothing to do.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/device/device.h"
#include "common/program/program_host.h"
#include "common/program/program_instance.h"
#include "common/program/session_memory.h"

namespace weft {

// Consecutive entries of one page table: `count` values of Step::pages from `first_page`.
struct TableRun {
  int32_t table = 0;
  int32_t first_entry = 0;
  int32_t count = 0;
  size_t first_page = 0;
};

// One step in flight. Its memory is kept and reused, so that a steady state allocates only outputs.
// The launching thread fills it before Submit; device threads only read the first part.
struct Step {
  int64_t number = 0;
  const ProgramInstance* instance = nullptr;
  std::vector<uint8_t> upload;  // inputs, at the host offsets of the instance
  std::vector<TableRun> table_runs;
  std::vector<int32_t> pages;
  std::vector<PageCopy> page_copies;
  StepOutput output;  // output.outputs[i] is written by the device that holds it

  // Guarded by the executor's mutex.
  enum class Phase { kFree, kLaunched, kFinished };
  Phase phase = Phase::kFree;
  absl::Status status;
  std::vector<bool> recorded;    // per event
  std::vector<bool> pending_on;  // per device: has not finished its part
  int32_t pending_count = 0;
  // Set when the step was cancelled or a command failed: streams end at their next command.
  std::atomic<bool> stop = false;
};

class StepExecutor {
 public:
  // `devices` and `memory` outlive it; `logger` may be null. Errors: those of OpenBackend;
  // RESOURCE_EXHAUSTED for a thread.
  static absl::StatusOr<std::unique_ptr<StepExecutor>> Create(absl::Span<Device* const> devices,
                                                              const SessionMemory& memory,
                                                              Logger* logger);
  ~StepExecutor();
  // Cancels what is in flight and joins the threads; nothing runs after it.
  void Stop();

  // For Prepare and NewEvent while all is idle; one per device.
  absl::Span<Backend* const> backends() const { return backends_; }

  // The record of the next step, for the one launching thread to fill. Errors: FAILED_PRECONDITION
  // unless `number` is the next; RESOURCE_EXHAUSTED with kMaxStepsInFlight not yet awaited.
  absl::StatusOr<Step*> Begin(int64_t number);
  // Queues the step of the last Begin.
  void Submit(Step& step);
  // As ProgramHost.
  absl::StatusOr<StepOutput> Await(int64_t number, Clock::TimePoint deadline);
  absl::Status Cancel(int64_t number);
  // Returns once every submitted step has finished.
  void WaitIdle();

 private:
  struct DeviceThread {
    int32_t index = 0;
    std::unique_ptr<Backend> backend;
    CondVar wake;
    std::thread thread;
  };

  StepExecutor(const SessionMemory& memory, Logger* logger) : memory_(memory), logger_(logger) {}
  Step& StepOf(int64_t number) { return steps_[static_cast<size_t>(number % kMaxStepsInFlight)]; }

  void Run(DeviceThread& device);
  void RunStep(DeviceThread& device, Step& step);
  absl::Status ApplyUpdates(DeviceThread& device, const Step& step);
  absl::Status RunStream(DeviceThread& device, Step& step, double& waited_seconds);
  absl::Status RunCommand(DeviceThread& device, Step& step, const Command& command,
                          const PreparedCommand& prepared, double& waited_seconds);
  absl::Status FetchOutputs(DeviceThread& device, Step& step, const PreparedStream& prepared);

  void MarkRecorded(Step& step, int32_t event);
  // False: the step was stopped before the event was recorded.
  bool AwaitRecorded(DeviceThread& device, Step& step, int32_t event);
  void Fail(Step& step, absl::Status status);
  void StopLocked(Step& step, absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(DeviceThread& device, Step& step, double seconds);
  void FinishStepLocked(Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeDevicesLocked(const Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SessionMemory& memory_;
  Logger* const logger_;
  const SystemClock clock_;
  std::vector<std::unique_ptr<DeviceThread>> devices_;
  std::vector<Backend*> backends_;

  Mutex mutex_;
  CondVar finished_;  // some step finished
  std::array<Step, kMaxStepsInFlight> steps_;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 1;     // to be launched
  int64_t current_ ABSL_GUARDED_BY(mutex_) = 1;  // runs now, or next_ if all is idle
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace weft
