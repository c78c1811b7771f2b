#include "common/program/step_executor.h"

#include <algorithm>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

absl::Status InContext(const absl::Status& status, const std::string& where) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepExecutor>> StepExecutor::Create(
    absl::Span<Device* const> devices, const SessionMemory& memory, ExecutorOptions options) {
  std::unique_ptr<StepExecutor> executor(
      new StepExecutor(memory, std::move(options), static_cast<int32_t>(devices.size())));
  const StreamContext context{
      memory,
      executor->options_.observer,
      *executor,
      executor->options_.edges,
      {executor->local_ranks_, executor->options_.collectives, executor->options_.meter}};
  for (Device* device : devices) {
    auto thread = std::make_unique<DeviceThread>();
    thread->index = static_cast<int32_t>(executor->devices_.size());
    ASSIGN_OR_RETURN(thread->backend, device->OpenBackend({}));
    thread->runner = std::make_unique<StreamRunner>(thread->index, *thread->backend, context);
    executor->backends_.push_back(thread->backend.get());
    executor->devices_.push_back(std::move(thread));
  }
  for (const auto& device : executor->devices_) {
    // The standard library reports a missing thread by an exception; it ends here.
    try {
      device->thread =
          std::thread([self = executor.get(), &device = *device] { self->Run(device); });
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot start a thread: ", error.what()));
    }
  }
  return executor;
}

StepExecutor::~StepExecutor() { Stop(); }

void StepExecutor::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    for (int64_t number = oldest_; number < next_; ++number) {
      StopLocked(StepOf(number), absl::CancelledError("the session ends"));
    }
    for (const auto& device : devices_) device->wake.NotifyAll();
  }
  WakeReceives();
  for (const auto& device : devices_) {
    if (device->thread.joinable()) device->thread.join();
  }
}

absl::StatusOr<Step*> StepExecutor::Begin(int64_t number) {
  MutexLock lock(mutex_);
  if (number != next_) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", number, " was launched, step ", next_, " is the next"));
  }
  Step& step = StepOf(number);
  if (step.phase != Step::Phase::kFree) {
    return absl::ResourceExhaustedError(absl::StrCat("step ", number, ": step ", step.number,
                                                     " was not awaited, at most ",
                                                     kMaxStepsInFlight, " are in flight"));
  }
  return &step;
}

StepEnds StepExecutor::Submit(Step& step) {
  const ProgramInstance& instance = *step.instance;
  StepEnds ends;
  MutexLock lock(mutex_);
  rotation_ = NextRotationLocked();
  step.copy = instance.CopyOf(rotation_);
  step.number = next_++;
  step.phase = Step::Phase::kLaunched;
  step.status = absl::OkStatus();
  step.stop.store(false, std::memory_order_relaxed);
  step.recorded.assign(static_cast<size_t>(instance.program().event_count), false);
  step.pending_on.assign(devices_.size(), false);
  step.pending_count = 0;
  step.overlapped = false;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const auto index = static_cast<int32_t>(d);
    const bool tables = !step.table_runs.empty() && memory_.HasTables(index);
    if (instance.StreamOf(index) == nullptr && !tables) continue;
    step.pending_on[d] = true;
    ++step.pending_count;
  }
  ++counters_.launched;
  AdvanceLocked(ends);
  return ends;
}

void StepExecutor::Report(const StepEnds& ends) {
  if (ends.retired > 0) {
    if (options_.edges != nullptr) options_.edges->Retire(ends.retired);
    if (options_.collectives != nullptr) options_.collectives->Retire(ends.retired);
    local_ranks_.Retire(ends.retired);
  }
  if (!options_.on_finished) return;
  for (size_t i = 0; i < ends.count; ++i) options_.on_finished(ends.steps[i]);
}

int32_t StepExecutor::NextRotationLocked() {
  for (const Step& step : steps_) {
    if (step.phase != Step::Phase::kFree) return (rotation_ + 1) % kMaxStepsInFlight;
  }
  return 0;
}

absl::StatusOr<StepOutput> StepExecutor::Await(int64_t number, Clock::TimePoint deadline) {
  MutexLock lock(mutex_);
  Step* step = number >= 1 ? &StepOf(number) : nullptr;
  const auto known = [&] {
    return step != nullptr && step->number == number && step->phase != Step::Phase::kFree;
  };
  bool in_time = true;
  while (known() && step->phase != Step::Phase::kFinished) {
    if (!in_time) return absl::DeadlineExceededError(absl::StrCat("step ", number));
    in_time = finished_.WaitUntil(mutex_, deadline);
  }
  if (!known()) {
    return absl::NotFoundError(absl::StrCat("step ", number, " is not in flight"));
  }
  step->phase = Step::Phase::kFree;
  step->instance = nullptr;
  StepOutput output = std::move(step->output);
  step->output = StepOutput{};
  if (!step->status.ok()) return step->status;
  return output;
}

absl::Status StepExecutor::Cancel(int64_t number) {
  {
    MutexLock lock(mutex_);
    if (number < 1 || number >= next_) {
      return absl::NotFoundError(absl::StrCat("step ", number, " was not launched"));
    }
    Step& step = StepOf(number);
    if (step.number == number && step.phase == Step::Phase::kLaunched) {
      StopLocked(step, absl::CancelledError(absl::StrCat("step ", number, " was cancelled")));
    }
  }
  WakeReceives();
  return absl::OkStatus();
}

void StepExecutor::WakeReceives() {
  if (options_.edges != nullptr) options_.edges->Wake();
  if (options_.collectives != nullptr) options_.collectives->Wake();
  local_ranks_.Wake();
}

void StepExecutor::WaitIdle() {
  MutexLock lock(mutex_);
  while (oldest_ < next_) finished_.Wait(mutex_);
}

StepCounters StepExecutor::counters() {
  MutexLock lock(mutex_);
  return counters_;
}

void StepExecutor::Run(DeviceThread& device) {
  while (true) {
    Step* step = nullptr;
    {
      MutexLock lock(mutex_);
      while (step == nullptr) {
        if (stopping_) return;
        step = NextStepLocked(device.index);
        if (step == nullptr) device.wake.Wait(mutex_);
      }
      NoteOverlapLocked(*step);
    }
    RunStep(device, *step);
  }
}

Step* StepExecutor::NextStepLocked(int32_t device) {
  bool overlaps = true;  // all steps before, that have not finished
  for (int64_t number = oldest_; number < next_; ++number) {
    Step& step = StepOf(number);
    if (step.phase != Step::Phase::kLaunched) continue;  // finished before an earlier one
    const bool may_overlap = step.instance->program().copies > 1;
    if (number > oldest_ && !(overlaps && may_overlap)) return nullptr;
    if (step.pending_on[device]) return &step;
    overlaps = overlaps && may_overlap;
  }
  return nullptr;
}

void StepExecutor::NoteOverlapLocked(Step& step) {
  if (step.number == oldest_ || step.overlapped) return;
  step.overlapped = true;
  ++counters_.overlapped;
}

void StepExecutor::RunStep(DeviceThread& device, Step& step) {
  const auto where = [&] {
    return absl::StrCat("step ", step.number, ", ", device.backend->device().name());
  };
  const Clock::TimePoint start = clock_.Now();
  StreamTimes times;
  const absl::Status status = device.runner->Run(step, times);
  if (!status.ok()) Fail(step, InContext(status, where()));
  device.runner->Drain();
  const absl::Status finished = device.backend->Synchronize();
  if (!finished.ok()) Fail(step, InContext(finished, where()));
  Finish(device, step, SecondsSince(clock_, start), times);
}

void StepExecutor::MarkRecorded(Step& step, int32_t event) {
  MutexLock lock(mutex_);
  step.recorded[event] = true;
  WakeDevicesLocked(step);
}

bool StepExecutor::AwaitRecorded(Step& step, int32_t event, int32_t device) {
  MutexLock lock(mutex_);
  while (!step.recorded[event] && !step.stop.load(std::memory_order_relaxed)) {
    devices_[device]->wake.Wait(mutex_);
  }
  return step.recorded[event];
}

void StepExecutor::Fail(Step& step, absl::Status status) {
  if (options_.logger != nullptr) options_.logger->Debug(StdView(status.message()));
  {
    MutexLock lock(mutex_);
    StopLocked(step, std::move(status));
  }
  WakeReceives();
}

void StepExecutor::StopLocked(Step& step, absl::Status status) {
  if (step.status.ok()) step.status = std::move(status);
  step.stop.store(true, std::memory_order_relaxed);
  WakeDevicesLocked(step);
}

void StepExecutor::Finish(DeviceThread& device, Step& step, double seconds,
                          const StreamTimes& times) {
  StepEnds ends;
  {
    MutexLock lock(mutex_);
    if (seconds > step.output.busy_seconds()) {
      step.output.wait_seconds = times.wait_seconds;
      step.output.wire_seconds = times.wire_seconds;
      step.output.hand_off_seconds = times.hand_off_seconds;
      step.output.compute_seconds =
          std::max(0.0, seconds - times.wait_seconds - times.wire_seconds - times.hand_off_seconds);
    }
    step.pending_on[device.index] = false;
    if (--step.pending_count > 0) return;
    FinishLocked(step, ends);
    AdvanceLocked(ends);
  }
  Report(ends);
}

void StepExecutor::FinishLocked(Step& step, StepEnds& ends) {
  step.phase = Step::Phase::kFinished;
  ends.steps[ends.count++] = step.number;
  finished_.NotifyAll();
}

void StepExecutor::AdvanceLocked(StepEnds& ends) {
  while (oldest_ < next_ && StepOf(oldest_).pending_count == 0) {
    // It may have finished before an earlier one, and be awaited. Without a part for any device it
    // ends when its turn comes.
    Step& step = StepOf(oldest_++);
    ends.retired = step.edge_step;
    if (step.phase == Step::Phase::kLaunched) FinishLocked(step, ends);
    finished_.NotifyAll();
  }
  for (const auto& device : devices_) {
    if (NextStepLocked(device->index) != nullptr) device->wake.NotifyOne();
  }
}

void StepExecutor::WakeDevicesLocked(const Step& step) {
  for (const auto& device : devices_) {
    if (step.pending_on[device->index]) device->wake.NotifyOne();
  }
}

}  // namespace weft
