// The threads that run steps: one per device, each with its backend.
//
// A step starts on a device once the step before it has finished there, if the programs of both let
// steps overlap (Program::copies); otherwise once it has finished on all devices. Consecutive steps
// use the copies of crossing slots in turn, so that what a device still reads of one step is not
// written by the next. A thread sleeps on a condition variable whenever it has nothing to do.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
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
#include "common/program/session_memory.h"
#include "common/program/step.h"
#include "common/program/stream_runner.h"

namespace weft {

// Steps since the executor was made.
struct StepCounters {
  int64_t launched = 0;
  int64_t overlapped = 0;  // started on a device while an earlier one still ran on another
};

class StepExecutor final : private StepEvents {
 public:
  // `devices`, `memory` and `observer` outlive it; `observer` may be empty, `logger` null. Errors:
  // those of OpenBackend; RESOURCE_EXHAUSTED for a thread.
  static absl::StatusOr<std::unique_ptr<StepExecutor>> Create(absl::Span<Device* const> devices,
                                                              const SessionMemory& memory,
                                                              const StepObserver& observer,
                                                              Logger* logger);
  ~StepExecutor() override;
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
  StepCounters counters();

 private:
  struct DeviceThread {
    int32_t index = 0;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<StreamRunner> runner;
    CondVar wake;
    std::thread thread;
  };

  StepExecutor(const SessionMemory& memory, Logger* logger) : memory_(memory), logger_(logger) {}
  Step& StepOf(int64_t number) { return steps_[static_cast<size_t>(number % kMaxStepsInFlight)]; }

  void Run(DeviceThread& device);
  void RunStep(DeviceThread& device, Step& step);
  void MarkRecorded(Step& step, int32_t event) override;
  bool AwaitRecorded(Step& step, int32_t event, int32_t device) override;
  void Fail(Step& step, absl::Status status);
  void Finish(DeviceThread& device, Step& step, double seconds);

  // The step that the device may run now, or null.
  Step* NextStepLocked(int32_t device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteOverlapLocked(Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The copy that the next step uses: the one after that of the last step, or the first if none is
  // in flight, so that what devices captured for it stays in use.
  int32_t NextRotationLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StopLocked(Step& step, absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves on past finished steps and wakes the devices that have something to run.
  void AdvanceLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeDevicesLocked(const Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SessionMemory& memory_;
  Logger* const logger_;
  const SystemClock clock_;
  std::vector<std::unique_ptr<DeviceThread>> devices_;
  std::vector<Backend*> backends_;

  Mutex mutex_;
  CondVar finished_;  // some step finished
  std::array<Step, kMaxStepsInFlight> steps_;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 1;      // to be launched
  int64_t oldest_ ABSL_GUARDED_BY(mutex_) = 1;    // has not finished, or next_ if all is idle
  int32_t rotation_ ABSL_GUARDED_BY(mutex_) = 0;  // of the last launched step
  StepCounters counters_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace weft
