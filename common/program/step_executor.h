// The threads that run steps: one per device, each with its backend.
//
// A step starts on a device once the step before it has finished there, if the programs of both let
// steps overlap (Program::copies); otherwise once it has finished on all devices. Consecutive steps
// use the copies of crossing slots in turn, so that what a device still reads of one step is not
// written by the next. A thread sleeps on a condition variable whenever it has nothing to do.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/collectives/local_exchange.h"
#include "common/device/device.h"
#include "common/program/edge_port.h"
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

// Called once for each finished step, failed and cancelled ones too. See LocalProgramHostOptions.
using FinishedCallback = std::function<void(int64_t step)>;

// Steps that have just finished.
struct StepEnds {
  std::array<int64_t, kMaxStepsInFlight> steps = {};
  size_t count = 0;
  int64_t retired = 0;  // no step up to this one receives messages any more; 0: nothing new
};

// What a host adds to running steps; all may be null or empty, and outlive the executor.
struct ExecutorOptions {
  StepObserver observer;
  EdgePort* edges = nullptr;
  EdgePort* collectives = nullptr;
  FinishedCallback on_finished;
  Logger* logger = nullptr;
  CollectiveMeter* meter = nullptr;
};

class StepExecutor final : private StepEvents {
 public:
  // `devices` and `memory` outlive it. Errors: those of OpenBackend; RESOURCE_EXHAUSTED for a
  // thread.
  static absl::StatusOr<std::unique_ptr<StepExecutor>> Create(absl::Span<Device* const> devices,
                                                              const SessionMemory& memory,
                                                              ExecutorOptions options);
  ~StepExecutor() override;
  // Cancels what is in flight and joins the threads; nothing runs after it.
  void Stop();

  // For Prepare and NewEvent while all is idle; one per device.
  absl::Span<Backend* const> backends() const { return backends_; }

  // The record of the next step, for the one launching thread to fill. Errors: FAILED_PRECONDITION
  // unless `number` is the next; RESOURCE_EXHAUSTED with kMaxStepsInFlight not yet awaited.
  absl::StatusOr<Step*> Begin(int64_t number);
  // Queues the step of the last Begin. Then call Report with the result, without a lock that the
  // callback of finished steps may need.
  StepEnds Submit(Step& step);
  void Report(const StepEnds& ends);
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

  StepExecutor(const SessionMemory& memory, ExecutorOptions options, int32_t devices)
      : memory_(memory), options_(std::move(options)), local_ranks_(devices) {}
  Step& StepOf(int64_t number) { return steps_[static_cast<size_t>(number % kMaxStepsInFlight)]; }

  void Run(DeviceThread& device);
  void RunStep(DeviceThread& device, Step& step);
  void MarkRecorded(Step& step, int32_t event) override;
  bool AwaitRecorded(Step& step, int32_t event, int32_t device) override;
  void Fail(Step& step, absl::Status status);
  // `seconds`, of which `times` was no computing.
  void Finish(DeviceThread& device, Step& step, double seconds, const StreamTimes& times);
  // Call without the mutex after StopLocked, so that receives see it.
  void WakeReceives();

  // The step that the device may run now, or null.
  Step* NextStepLocked(int32_t device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteOverlapLocked(Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The copy that the next step uses: the one after that of the last step, or the first if none is
  // in flight, so that what devices captured for it stays in use.
  int32_t NextRotationLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StopLocked(Step& step, absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishLocked(Step& step, StepEnds& ends) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves on past finished steps and wakes the devices that have something to run.
  void AdvanceLocked(StepEnds& ends) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeDevicesLocked(const Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SessionMemory& memory_;
  const ExecutorOptions options_;
  const SystemClock clock_;
  LocalExchange local_ranks_;
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
