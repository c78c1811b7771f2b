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
    absl::Span<Device* const> devices, const SessionMemory& memory, Logger* logger) {
  std::unique_ptr<StepExecutor> executor(new StepExecutor(memory, logger));
  for (Device* device : devices) {
    auto thread = std::make_unique<DeviceThread>();
    thread->index = static_cast<int32_t>(executor->devices_.size());
    ASSIGN_OR_RETURN(thread->backend, device->OpenBackend({}));
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
    for (int64_t number = current_; number < next_; ++number) {
      StopLocked(StepOf(number), absl::CancelledError("the session ends"));
    }
    for (const auto& device : devices_) device->wake.NotifyAll();
  }
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

void StepExecutor::Submit(Step& step) {
  const ProgramInstance& instance = *step.instance;
  MutexLock lock(mutex_);
  step.number = next_++;
  step.phase = Step::Phase::kLaunched;
  step.status = absl::OkStatus();
  step.stop.store(false, std::memory_order_relaxed);
  step.recorded.assign(static_cast<size_t>(instance.program().event_count), false);
  step.pending_on.assign(devices_.size(), false);
  step.pending_count = 0;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const auto index = static_cast<int32_t>(d);
    const bool tables = !step.table_runs.empty() && memory_.HasTables(index);
    if (instance.StreamOf(index) == nullptr && !tables) continue;
    step.pending_on[d] = true;
    ++step.pending_count;
  }
  if (current_ == step.number) {
    if (step.pending_count == 0) {
      FinishStepLocked(step);
    } else {
      WakeDevicesLocked(step);
    }
  }
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
  MutexLock lock(mutex_);
  if (number < 1 || number >= next_) {
    return absl::NotFoundError(absl::StrCat("step ", number, " was not launched"));
  }
  Step& step = StepOf(number);
  if (step.number == number && step.phase == Step::Phase::kLaunched) {
    StopLocked(step, absl::CancelledError(absl::StrCat("step ", number, " was cancelled")));
  }
  return absl::OkStatus();
}

void StepExecutor::WaitIdle() {
  MutexLock lock(mutex_);
  while (current_ < next_) finished_.Wait(mutex_);
}

void StepExecutor::Run(DeviceThread& device) {
  while (true) {
    Step* step = nullptr;
    {
      MutexLock lock(mutex_);
      while (step == nullptr) {
        if (stopping_) return;
        if (current_ < next_ && StepOf(current_).pending_on[device.index]) {
          step = &StepOf(current_);
        } else {
          device.wake.Wait(mutex_);
        }
      }
    }
    RunStep(device, *step);
  }
}

void StepExecutor::RunStep(DeviceThread& device, Step& step) {
  const auto where = [&] {
    return absl::StrCat("step ", step.number, ", ", device.backend->device().name());
  };
  const Clock::TimePoint start = clock_.Now();
  double waited_seconds = 0;
  absl::Status status = InContext(ApplyUpdates(device, step), "page tables");
  if (status.ok()) status = RunStream(device, step, waited_seconds);
  if (!status.ok()) Fail(step, InContext(status, where()));
  const absl::Status finished = device.backend->Synchronize();
  if (!finished.ok()) Fail(step, InContext(finished, where()));
  Finish(device, step, SecondsSince(clock_, start) - waited_seconds);
}

// Happens in every step, also if it was cancelled: later steps rely on it (decision 13).
absl::Status StepExecutor::ApplyUpdates(DeviceThread& device, const Step& step) {
  for (const TableRun& run : step.table_runs) {
    Buffer* table = memory_.Table(run.table, device.index);
    if (table == nullptr) continue;
    // Another device may hold a longer copy of the table.
    const int64_t offset = int64_t{run.first_entry} * 4;
    const int64_t bytes = std::min<int64_t>(int64_t{run.count} * 4, table->size() - offset);
    if (bytes <= 0) continue;
    RETURN_IF_ERROR(
        device.backend->Upload(step.pages.data() + run.first_page, *table, offset, bytes));
  }
  for (const PageCopy& copy : step.page_copies) {
    const SlotMemory cache = step.instance->CacheOn(device.index, copy.cache);
    if (cache.buffer == nullptr || copy.from == copy.to) continue;
    RETURN_IF_ERROR(device.backend->Copy(*cache.buffer, cache.offset + copy.from * copy.page_bytes,
                                         *cache.buffer, cache.offset + copy.to * copy.page_bytes,
                                         copy.page_bytes));
  }
  return absl::OkStatus();
}

absl::Status StepExecutor::RunStream(DeviceThread& device, Step& step, double& waited_seconds) {
  const PreparedStream* prepared = step.instance->PreparedOf(device.index);
  if (prepared == nullptr || step.stop.load(std::memory_order_relaxed)) return absl::OkStatus();
  for (const int32_t id : prepared->inputs) {
    const Transfer& input = step.instance->inputs()[id];
    RETURN_IF_ERROR(
        InContext(device.backend->Upload(step.upload.data() + input.host_offset,
                                         *input.memory.buffer, input.memory.offset, input.bytes),
                  absl::StrCat("input ", id)));
  }
  const Stream& stream = *step.instance->StreamOf(device.index);
  for (size_t i = 0; i < stream.commands.size(); ++i) {
    if (step.stop.load(std::memory_order_relaxed)) return absl::OkStatus();
    const absl::Status status =
        RunCommand(device, step, stream.commands[i], prepared->commands[i], waited_seconds);
    if (!status.ok()) {
      return InContext(status, CommandText(step.instance->program(), stream, i));
    }
  }
  return FetchOutputs(device, step, *prepared);
}

absl::Status StepExecutor::RunCommand(DeviceThread& device, Step& step, const Command& command,
                                      const PreparedCommand& prepared, double& waited_seconds) {
  Backend& backend = *device.backend;
  if (std::holds_alternative<ComputeCommand>(command)) {
    return backend.Launch(*prepared.executable);
  }
  if (std::holds_alternative<CopyCommand>(command)) {
    return backend.Copy(*prepared.source.buffer, prepared.source.offset,
                        *prepared.destination.buffer, prepared.destination.offset, prepared.bytes);
  }
  if (std::holds_alternative<RecordCommand>(command)) {
    RETURN_IF_ERROR(backend.Record(step.instance->event(prepared.event)));
    MarkRecorded(step, prepared.event);
    return absl::OkStatus();
  }
  // A wait for an event that was never recorded would pass at once: first let the other stream's
  // thread record it.
  const Clock::TimePoint start = clock_.Now();
  const bool recorded = AwaitRecorded(device, step, prepared.event);
  waited_seconds += SecondsSince(clock_, start);
  if (!recorded) return absl::OkStatus();
  return backend.Wait(step.instance->event(prepared.event));
}

absl::Status StepExecutor::FetchOutputs(DeviceThread& device, Step& step,
                                        const PreparedStream& prepared) {
  if (step.stop.load(std::memory_order_relaxed)) return absl::OkStatus();
  for (const int32_t i : prepared.outputs) {
    const Transfer& output = step.instance->outputs()[i];
    RETURN_IF_ERROR(InContext(device.backend->Download(*output.memory.buffer, output.memory.offset,
                                                       step.output.outputs[i].data(), output.bytes),
                              absl::StrCat("output ", i)));
  }
  return absl::OkStatus();
}

void StepExecutor::MarkRecorded(Step& step, int32_t event) {
  MutexLock lock(mutex_);
  step.recorded[event] = true;
  WakeDevicesLocked(step);
}

bool StepExecutor::AwaitRecorded(DeviceThread& device, Step& step, int32_t event) {
  MutexLock lock(mutex_);
  while (!step.recorded[event] && !step.stop.load(std::memory_order_relaxed)) {
    device.wake.Wait(mutex_);
  }
  return step.recorded[event];
}

void StepExecutor::Fail(Step& step, absl::Status status) {
  if (logger_ != nullptr) logger_->Debug(StdView(status.message()));
  MutexLock lock(mutex_);
  StopLocked(step, std::move(status));
}

void StepExecutor::StopLocked(Step& step, absl::Status status) {
  if (step.status.ok()) step.status = std::move(status);
  step.stop.store(true, std::memory_order_relaxed);
  WakeDevicesLocked(step);
}

void StepExecutor::Finish(DeviceThread& device, Step& step, double seconds) {
  MutexLock lock(mutex_);
  step.output.compute_seconds = std::max(step.output.compute_seconds, seconds);
  step.pending_on[device.index] = false;
  if (--step.pending_count == 0) FinishStepLocked(step);
}

void StepExecutor::FinishStepLocked(Step& step) {
  step.phase = Step::Phase::kFinished;
  ++current_;
  // A step without a part for any device ends when its turn comes.
  while (current_ < next_ && StepOf(current_).pending_count == 0) {
    StepOf(current_).phase = Step::Phase::kFinished;
    ++current_;
  }
  if (current_ < next_) WakeDevicesLocked(StepOf(current_));
  finished_.NotifyAll();
}

void StepExecutor::WakeDevicesLocked(const Step& step) {
  for (const auto& device : devices_) {
    if (step.pending_on[device->index]) device->wake.NotifyOne();
  }
}

}  // namespace weft
