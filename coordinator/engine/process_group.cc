#include "coordinator/engine/process_group.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// How long one process is waited for before the others are looked at: one of them may have failed,
// and then this one waits for what never comes.
constexpr std::chrono::milliseconds kLookRound{20};
// What cancelled parts of a step get to end in.
constexpr std::chrono::seconds kCancelTime{5};

bool IsConsequence(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsAborted(status);
}

size_t CountInputs(const FleetProgram& program) {
  size_t count = 0;
  for (const ProcessProgram& process : program.processes) {
    for (const int32_t id : process.inputs) count = std::max(count, static_cast<size_t>(id) + 1);
  }
  return count;
}

}  // namespace

ProcessGroup::ProcessGroup(ProgramHost& only) : ProcessGroup({GroupMember{"", &only}}) {}

ProcessGroup::ProcessGroup(std::vector<GroupMember> members)
    : members_(std::move(members)), routes_(size()), next_step_of_(members_.size(), 1) {
  for (const GroupMember& member : members_) {
    statistics_.emplace_back();
    statistics_.back().host = member.host;
  }
}

absl::Status ProcessGroup::InContext(int32_t process, const absl::Status& status) const {
  if (status.ok() || members_[process].names_itself) return status;
  return absl::Status(status.code(), absl::StrCat(members_[process].host, ": ", status.message()));
}

// --- Programs ---

absl::StatusOr<FleetProgram> ProcessGroup::Compile(const PlanContext& context,
                                                   const ExecutionPlan& plan) const {
  if (!members_[0].host.empty()) {
    std::vector<std::string> hosts;
    hosts.reserve(members_.size());
    for (const GroupMember& member : members_) hosts.push_back(member.host);
    return CompileFleet(context, plan, hosts);
  }
  FleetProgram fleet;
  ASSIGN_OR_RETURN(Program program, CompilePlan(context, plan));
  fleet.processes.push_back({members_[0].host, std::move(program), {}, {}});
  return fleet;
}

absl::StatusOr<ProgramId> ProcessGroup::Install(FleetProgram program) {
  if (program.processes.size() != members_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a program for ", program.processes.size(),
                                                   " processes, here are ", members_.size()));
  }
  if (solo()) return members_[0].programs->Install(std::move(program.processes[0].program));
  GroupProgram installed;
  installed.input_count = CountInputs(program);
  installed.output_count = static_cast<size_t>(program.output_count);
  std::vector<Program> programs;
  for (int32_t p = 0; p < size(); ++p) {
    ProcessProgram& mine = program.processes[p];
    if (mine.program.streams.empty()) continue;
    Part part;
    part.process = p;
    part.slots = mine.program.slots;
    part.inputs = std::move(mine.inputs);
    part.outputs = std::move(mine.outputs);
    for (int32_t to = 0; to < size(); ++to) {
      part.messages += program.Messages(p, to);
      part.message_bytes += program.MessageBytes(p, to);
      if (to == p) continue;
      const RankTraffic ranks = program.Ranks(p, to);
      part.messages += ranks.messages;
      part.message_bytes += ranks.bytes;
    }
    programs.push_back(std::move(mine.program));
    installed.parts.push_back(std::move(part));
  }
  RETURN_IF_ERROR(RunParallel(programs.size(), [&](size_t i) {
    Part& part = installed.parts[i];
    const absl::StatusOr<ProgramId> id = host(part.process).Install(std::move(programs[i]));
    if (id.ok()) part.program = *id;
    return InContext(part.process, id.status());
  }));
  const ProgramId id{next_id_++};
  programs_.emplace(id, std::move(installed));
  return id;
}

absl::StatusOr<InstanceId> ProcessGroup::Instantiate(ProgramId id,
                                                     absl::Span<const SlotBinding> bindings) {
  if (solo()) return members_[0].programs->Instantiate(id, bindings);
  const auto program = programs_.find(id);
  if (program == programs_.end()) {
    return absl::NotFoundError(
        absl::StrCat("program ", static_cast<int64_t>(id), " is not installed"));
  }
  const std::vector<Part>& parts = program->second.parts;
  std::vector<absl::StatusOr<InstanceId>> made(parts.size(), absl::UnknownError("not made"));
  const absl::Status status = RunParallel(parts.size(), [&](size_t i) {
    made[i] = InstantiatePart(parts[i], bindings);
    return made[i].status();
  });
  if (!status.ok()) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (made[i].ok()) host(parts[i].process).Release(*made[i]).IgnoreError();
    }
    Forget(id);
    return status;
  }
  GroupInstance instance{id, {}};
  for (const absl::StatusOr<InstanceId>& part : made) instance.parts.push_back(*part);
  for (const Part& part : parts) routes_.AddSlots(part.process, part.slots);
  ++program->second.instances;
  const InstanceId result{next_id_++};
  instances_.emplace(result, std::move(instance));
  return result;
}

absl::StatusOr<InstanceId> ProcessGroup::InstantiatePart(const Part& part,
                                                         absl::Span<const SlotBinding> bindings) {
  std::vector<SlotBinding> mine;
  for (const SlotBinding& binding : bindings) {
    const bool here = binding.buffer == nullptr ||
                      binding.buffer->type().device().host() == members_[part.process].host;
    if (here) mine.push_back(binding);
  }
  absl::StatusOr<InstanceId> instance = host(part.process).Instantiate(part.program, mine);
  if (instance.ok()) return instance;
  return InContext(part.process, instance.status());
}

void ProcessGroup::Forget(ProgramId program) {
  const auto found = programs_.find(program);
  if (found->second.instances == 0) programs_.erase(found);
}

absl::Status ProcessGroup::Release(InstanceId id) {
  if (solo()) return members_[0].programs->Release(id);
  const auto found = instances_.find(id);
  if (found == instances_.end()) {
    return absl::NotFoundError(absl::StrCat("no instance ", static_cast<int64_t>(id)));
  }
  GroupProgram& program = programs_.at(found->second.program);
  absl::Status status;
  for (size_t i = 0; i < program.parts.size(); ++i) {
    const int32_t process = program.parts[i].process;
    status.Update(InContext(process, host(process).Release(found->second.parts[i])));
  }
  --program.instances;
  Forget(found->second.program);
  instances_.erase(found);
  return status;
}

// --- Steps ---

absl::Status ProcessGroup::CheckLaunch(const GroupProgram& program, const StepInput& input) const {
  if (input.step != next_step_) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", input.step, " was launched, step ", next_step_, " is the next"));
  }
  if (in_flight_.size() >= static_cast<size_t>(kMaxStepsInFlight)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("step ", input.step, ": step ", in_flight_.front().step, " was not awaited, ",
                     "at most ", kMaxStepsInFlight, " are in flight"));
  }
  if (input.inputs.size() != program.input_count) {
    return absl::InvalidArgumentError(absl::StrCat("step ", input.step, ": ", input.inputs.size(),
                                                   " inputs, want ", program.input_count));
  }
  return routes_.Check(input);
}

absl::Status ProcessGroup::Launch(InstanceId id, const StepInput& input) {
  if (solo()) {
    RETURN_IF_ERROR(members_[0].programs->Launch(id, input));
    ++statistics_[0].steps;
    return absl::OkStatus();
  }
  const auto found = instances_.find(id);
  if (found == instances_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("instance ", static_cast<int64_t>(id), " does not exist"));
  }
  const GroupProgram& program = programs_.at(found->second.program);
  RETURN_IF_ERROR(CheckLaunch(program, input));
  routes_.Note(input);
  ++last_edge_step_;
  InFlight flight;
  flight.step = input.step;
  flight.output_count = program.output_count;
  for (size_t i = 0; i < program.parts.size(); ++i) {
    absl::Status status = LaunchPart(program.parts[i], found->second.parts[i], input, flight);
    if (status.ok()) continue;
    TakeBack(flight);
    return status;
  }
  ++next_step_;
  in_flight_.push_back(std::move(flight));
  return absl::OkStatus();
}

absl::Status ProcessGroup::LaunchPart(const Part& part, InstanceId instance, const StepInput& input,
                                      InFlight& flight) {
  StepInput mine;
  int64_t& step = next_step_of_[part.process];
  mine.step = step;
  mine.edge_step = last_edge_step_;
  mine.deadline = input.deadline;
  for (const int32_t id : part.inputs) mine.inputs.push_back(input.inputs[id]);
  routes_.Gather(part.process, part.slots, mine);
  const absl::Status status = host(part.process).Launch(instance, mine);
  if (!status.ok()) return InContext(part.process, status);
  routes_.Done(part.process, mine);
  flight.parts.push_back({part.process, step++, part.outputs, false, {}, {}});
  ProcessStatistics& statistics = statistics_[part.process];
  ++statistics.steps;
  statistics.messages += part.messages;
  statistics.message_bytes += part.message_bytes;
  return absl::OkStatus();
}

void ProcessGroup::TakeBack(InFlight& flight) {
  NoteFailure(flight, absl::CancelledError("the step was taken back"));
  WaitForAll(flight, clock_.Now());
}

void ProcessGroup::NoteFailure(InFlight& flight, absl::Status status) {
  if (flight.failure.ok()) {
    flight.failed_at = clock_.Now();
    for (const Running& running : flight.parts) {
      if (!running.finished) host(running.process).Cancel(running.step).IgnoreError();
    }
  }
  if (flight.failure.ok() || (IsConsequence(flight.failure) && !IsConsequence(status))) {
    flight.failure = std::move(status);
  }
}

void ProcessGroup::Count(int32_t process, const StepOutput& output) {
  statistics_[process].compute_seconds += output.compute_seconds;
  statistics_[process].wait_seconds += output.wait_seconds;
  statistics_[process].wire_seconds += output.wire_seconds;
  statistics_[process].hand_off_seconds += output.hand_off_seconds;
}

bool ProcessGroup::Look(InFlight& flight, Running& running, Clock::TimePoint until) {
  absl::StatusOr<StepOutput> output = host(running.process).Await(running.step, until);
  absl::Status status = output.status();
  // A step that failed because a message did not come in time looks like a wait that ended in time,
  // but only once.
  if (absl::IsNotFound(status) && !running.timed_out.ok()) {
    status = running.timed_out;
  } else if (absl::IsDeadlineExceeded(status)) {
    running.timed_out = status;
    return false;
  }
  running.finished = true;
  if (status.ok() && output->outputs.size() != running.positions.size()) {
    status = absl::InternalError(absl::StrCat("the step returned ", output->outputs.size(),
                                              " outputs, want ", running.positions.size()));
  }
  if (status.ok()) {
    running.output = *std::move(output);
    Count(running.process, running.output);
  } else {
    NoteFailure(flight, InContext(running.process, status));
  }
  return true;
}

bool ProcessGroup::WaitForAll(InFlight& flight, Clock::TimePoint deadline) {
  while (true) {
    const Clock::TimePoint now = clock_.Now();
    const Clock::TimePoint end =
        flight.failure.ok() ? deadline : std::max(deadline, flight.failed_at + kCancelTime);
    bool waited = false;
    bool all = true;
    // Most often the last process is the last to finish.
    for (auto it = flight.parts.rbegin(); it != flight.parts.rend(); ++it) {
      Running& running = *it;
      if (running.finished) continue;
      const Clock::TimePoint until = waited ? now : std::min(end, now + kLookRound);
      waited = true;
      all = Look(flight, running, until) && all;
    }
    if (all) return true;
    if (clock_.Now() >= end) return !flight.failure.ok();
  }
}

std::deque<ProcessGroup::InFlight>::iterator ProcessGroup::Find(int64_t step) {
  return std::find_if(in_flight_.begin(), in_flight_.end(),
                      [&](const InFlight& flight) { return flight.step == step; });
}

absl::StatusOr<StepOutput> ProcessGroup::Await(int64_t step, Clock::TimePoint deadline) {
  if (solo()) {
    ASSIGN_OR_RETURN(StepOutput output, members_[0].programs->Await(step, deadline));
    Count(0, output);
    return output;
  }
  const auto found = Find(step);
  if (found == in_flight_.end()) {
    return absl::NotFoundError(absl::StrCat("step ", step, " is not in flight"));
  }
  if (!WaitForAll(*found, deadline)) {
    return absl::DeadlineExceededError(absl::StrCat("step ", step));
  }
  InFlight flight = std::move(*found);
  in_flight_.erase(found);
  if (!flight.failure.ok()) return flight.failure;
  return Collect(flight);
}

StepOutput ProcessGroup::Collect(InFlight& flight) {
  StepOutput output;
  output.outputs.resize(flight.output_count);
  for (Running& running : flight.parts) {
    for (size_t i = 0; i < running.positions.size(); ++i) {
      output.outputs[running.positions[i]] = std::move(running.output.outputs[i]);
    }
    if (running.output.busy_seconds() <= output.busy_seconds()) continue;
    output.compute_seconds = running.output.compute_seconds;
    output.wait_seconds = running.output.wait_seconds;
    output.wire_seconds = running.output.wire_seconds;
    output.hand_off_seconds = running.output.hand_off_seconds;
  }
  return output;
}

absl::Status ProcessGroup::Cancel(int64_t step) {
  if (solo()) return members_[0].programs->Cancel(step);
  if (step < 1 || step >= next_step_) {
    return absl::NotFoundError(absl::StrCat("step ", step, " was not launched"));
  }
  const auto found = Find(step);
  if (found == in_flight_.end()) return absl::OkStatus();
  absl::Status status;
  for (const Running& running : found->parts) {
    if (running.finished) continue;
    status.Update(InContext(running.process, host(running.process).Cancel(running.step)));
  }
  return status;
}

HostCounters ProcessGroup::counters() {
  HostCounters sum;
  for (const GroupMember& member : members_) {
    const HostCounters mine = member.programs->counters();
    sum.memory_replaced += mine.memory_replaced;
    sum.prepared_again += mine.prepared_again;
    if (!mine.last_reason.empty()) sum.last_reason = mine.last_reason;
    sum.launched = std::max(sum.launched, mine.launched);
    sum.overlapped += mine.overlapped;
  }
  return sum;
}

}  // namespace weft
