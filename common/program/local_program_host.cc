#include "common/program/local_program_host.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {

namespace {

bool HasEdges(const Program& program) {
  for (const Stream& stream : program.streams) {
    for (const Command& command : stream.commands) {
      if (std::holds_alternative<SendCommand>(command)) return true;
      if (std::holds_alternative<ReceiveCommand>(command)) return true;
    }
  }
  return false;
}

bool HasRanksElsewhere(const Program& program) {
  const auto here = [](const CommunicatorRank& rank) { return rank.process == -1; };
  for (const ProgramCommunicator& communicator : program.communicators) {
    const auto count = std::count_if(communicator.ranks.begin(), communicator.ranks.end(), here);
    if (count > 0 && count < static_cast<int64_t>(communicator.ranks.size())) return true;
  }
  return false;
}

int64_t EdgeStep(const StepInput& input) {
  return input.edge_step == 0 ? input.step : input.edge_step;
}

}  // namespace

LocalProgramHost::LocalProgramHost(LocalProgramHostOptions options)
    : options_(std::move(options)),
      programs_(options_.limits.programs),
      memory_(options_.devices, options_.limits.table_bytes) {}

absl::StatusOr<std::unique_ptr<LocalProgramHost>> LocalProgramHost::Create(
    LocalProgramHostOptions options) {
  const auto count = static_cast<int64_t>(options.devices.size());
  if (count < 1 || count > options.limits.devices) {
    return absl::InvalidArgumentError(
        absl::StrCat(count, " devices, want 1 to ", options.limits.devices));
  }
  std::unique_ptr<LocalProgramHost> host(new LocalProgramHost(std::move(options)));
  const LocalProgramHostOptions& kept = host->options_;
  ASSIGN_OR_RETURN(host->executor_,
                   StepExecutor::Create(kept.devices, host->memory_,
                                        {kept.observer, kept.edges, kept.collectives,
                                         kept.on_finished, kept.logger, kept.meter}));
  return host;
}

LocalProgramHost::~LocalProgramHost() {
  // Threads first, then what they read, then the backends that made executables and events.
  Stop();
  instances_.clear();
}

void LocalProgramHost::Stop() {
  if (executor_ != nullptr) executor_->Stop();
}

absl::StatusOr<ProgramId> LocalProgramHost::Install(Program program) {
  RETURN_IF_ERROR(VerifyProgram(program, options_.limits));
  if (program.devices.size() > options_.devices.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the program uses ", program.devices.size(),
                                                   " devices, here are ", options_.devices.size()));
  }
  if (options_.edges == nullptr && HasEdges(program)) {
    return absl::FailedPreconditionError(
        "the program exchanges tensors with other processes, and this host has no edges");
  }
  if (options_.collectives == nullptr && HasRanksElsewhere(program)) {
    return absl::FailedPreconditionError(
        "the program has ranks in other processes, and this host has no port to them");
  }
  MutexLock lock(mutex_);
  return programs_.Add(std::move(program));
}

absl::StatusOr<InstanceId> LocalProgramHost::Instantiate(ProgramId id,
                                                         absl::Span<const SlotBinding> bindings) {
  MutexLock lock(mutex_);
  const Program* program = programs_.Find(id);
  if (program == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("program ", static_cast<int64_t>(id), " is not installed"));
  }
  if (static_cast<int64_t>(instances_.size()) >= options_.limits.instances) {
    return absl::ResourceExhaustedError(
        absl::StrCat(instances_.size(), " instances; release one first"));
  }
  executor_->WaitIdle();
  absl::StatusOr<std::unique_ptr<ProgramInstance>> instance = MakeInstance(id, *program, bindings);
  if (!instance.ok()) {
    FreeIfUnused();
    return instance.status();
  }
  programs_.Use(id);
  const InstanceId result{next_instance_++};
  instances_.emplace(result, *std::move(instance));
  return result;
}

absl::StatusOr<std::unique_ptr<ProgramInstance>> LocalProgramHost::MakeInstance(
    ProgramId id, const Program& program, absl::Span<const SlotBinding> bindings) {
  std::vector<std::string> replaced;
  const absl::Status reserved = memory_.Reserve(program, replaced);
  if (!replaced.empty()) PrepareMovedAgain(replaced);
  RETURN_IF_ERROR(reserved);
  return ProgramInstance::Create(id, program, bindings, memory_, executor_->backends());
}

// What a failed attempt reserved must not stand in the way of a smaller one.
void LocalProgramHost::FreeIfUnused() {
  if (instances_.empty()) memory_.Clear();
}

void LocalProgramHost::PrepareMovedAgain(const std::vector<std::string>& replaced) {
  bool any = false;
  for (auto& [id, instance] : instances_) {
    if (instance->IsCurrent(memory_)) continue;
    any = true;
    ++counters_.prepared_again;
    const absl::Status status = instance->PrepareAgain(memory_, executor_->backends());
    if (status.ok() || options_.logger == nullptr) continue;
    options_.logger->Warning(StdView(absl::StrCat("instance ", static_cast<int64_t>(id),
                                                  " became unusable: ", status.message())));
  }
  if (!any) return;
  ++counters_.memory_replaced;
  counters_.last_reason = absl::StrJoin(replaced, "; ");
  if (options_.logger != nullptr) options_.logger->Debug(counters_.last_reason);
}

HostCounters LocalProgramHost::counters() {
  MutexLock lock(mutex_);
  HostCounters counters = counters_;
  const StepCounters steps = executor_->counters();
  counters.launched = steps.launched;
  counters.overlapped = steps.overlapped;
  return counters;
}

absl::Status LocalProgramHost::Release(InstanceId id) {
  MutexLock lock(mutex_);
  const auto found = instances_.find(id);
  if (found == instances_.end()) {
    return absl::NotFoundError(absl::StrCat("no instance ", static_cast<int64_t>(id)));
  }
  executor_->WaitIdle();
  programs_.Unuse(found->second->program_id());
  instances_.erase(found);
  FreeIfUnused();
  return absl::OkStatus();
}

void LocalProgramHost::InvalidateBuffer(const Buffer* buffer) {
  MutexLock lock(mutex_);
  executor_->WaitIdle();
  for (auto it = instances_.begin(); it != instances_.end();) {
    const auto current = it++;
    if (!current->second->BindsBuffer(buffer)) continue;
    programs_.Unuse(current->second->program_id());
    instances_.erase(current);
  }
  FreeIfUnused();
}

absl::Status LocalProgramHost::CheckStepInput(const ProgramInstance& instance,
                                              const StepInput& input) const {
  const absl::Span<const HostInput> wanted = instance.inputs();
  if (input.inputs.size() != wanted.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.inputs.size(), " inputs, want ", wanted.size()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (static_cast<int64_t>(input.inputs[i].size()) == wanted[i].bytes) continue;
    return absl::InvalidArgumentError(absl::StrCat("input ", i, " has ", input.inputs[i].size(),
                                                   " bytes, want ", wanted[i].bytes));
  }
  if (static_cast<int64_t>(input.table_updates.size()) > options_.limits.table_updates ||
      static_cast<int64_t>(input.page_copies.size()) > options_.limits.page_copies) {
    return absl::InvalidArgumentError(absl::StrCat(input.table_updates.size(),
                                                   " table updates and ", input.page_copies.size(),
                                                   " page copies are too many"));
  }
  if (EdgeStep(input) <= last_edge_step_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its name ", EdgeStep(input), " does not follow ", last_edge_step_, " of the last step"));
  }
  for (const TableUpdate& update : input.table_updates) {
    RETURN_IF_ERROR(memory_.CheckUpdate(update));
  }
  for (const PageCopy& copy : input.page_copies) RETURN_IF_ERROR(instance.CheckPageCopy(copy));
  return absl::OkStatus();
}

void LocalProgramHost::FillStep(const StepInput& input, Step& step) {
  const ProgramInstance& instance = *step.instance;
  step.upload.resize(static_cast<size_t>(instance.input_bytes()));
  for (size_t i = 0; i < input.inputs.size(); ++i) {
    if (input.inputs[i].empty()) continue;
    std::memcpy(step.upload.data() + instance.inputs()[i].offset, input.inputs[i].data(),
                input.inputs[i].size());
  }
  step.table_runs.clear();
  step.pages.clear();
  for (const TableUpdate& update : input.table_updates) {
    memory_.NoteUpdate(update);
    if (step.table_runs.empty() || step.table_runs.back().table != update.table ||
        step.table_runs.back().first_entry + step.table_runs.back().count != update.entry) {
      step.table_runs.push_back({update.table, update.entry, 0, step.pages.size()});
    }
    ++step.table_runs.back().count;
    step.pages.push_back(update.page);
  }
  step.page_copies = input.page_copies;
  step.edge_step = last_edge_step_ = EdgeStep(input);
  step.deadline = input.deadline;
  step.output.outputs.resize(instance.output_bytes().size());
  for (size_t i = 0; i < step.output.outputs.size(); ++i) {
    step.output.outputs[i].resize(static_cast<size_t>(instance.output_bytes()[i]));
  }
}

absl::Status LocalProgramHost::Launch(InstanceId id, const StepInput& input) {
  ASSIGN_OR_RETURN(const StepEnds ends, Queue(id, input));
  executor_->Report(ends);
  return absl::OkStatus();
}

absl::StatusOr<StepEnds> LocalProgramHost::Queue(InstanceId id, const StepInput& input) {
  MutexLock lock(mutex_);
  const auto found = instances_.find(id);
  if (found == instances_.end() || !found->second->usable()) {
    return absl::FailedPreconditionError(
        absl::StrCat("instance ", static_cast<int64_t>(id),
                     found == instances_.end() ? " does not exist" : " lost its memory"));
  }
  ASSIGN_OR_RETURN(Step* const step, executor_->Begin(input.step));
  const absl::Status checked = CheckStepInput(*found->second, input);
  if (!checked.ok()) {
    return absl::Status(checked.code(), absl::StrCat("step ", input.step, ": ", checked.message()));
  }
  step->instance = found->second.get();
  FillStep(input, *step);
  return executor_->Submit(*step);
}

absl::StatusOr<StepOutput> LocalProgramHost::Await(int64_t step, Clock::TimePoint deadline) {
  return executor_->Await(step, deadline);
}

absl::Status LocalProgramHost::Cancel(int64_t step) { return executor_->Cancel(step); }

}  // namespace weft
