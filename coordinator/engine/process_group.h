// The processes that run one session's programs together, each through its ProgramHost: a step goes
// to all that have a part in it, and its outputs come from all.
//
// A group of one process hands everything straight to its host.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/program/program_host.h"
#include "coordinator/engine/table_routes.h"
#include "coordinator/scheduler/program_compiler.h"

namespace weft {

struct GroupMember {
  std::string host;  // of its devices: Device::host()
  // Runs programs on the devices of that host, in the order of the plan's list. Outlives the group.
  ProgramHost* programs = nullptr;
  bool names_itself = false;  // in its errors, which are then passed on as they are
};

// What a process did, since the group was made.
struct ProcessStatistics {
  std::string host;
  int64_t steps = 0;
  int64_t messages = 0;  // that it sent to others
  int64_t message_bytes = 0;
  double compute_seconds = 0;   // busiest streams
  double wait_seconds = 0;      // of those, for other streams and processes
  double wire_seconds = 0;      // of those, on messages of collectives
  double hand_off_seconds = 0;  // of those, on tensors to and from other processes
};

// One thread at a time calls it.
class ProcessGroup {
 public:
  // One process that has all devices, whatever their hosts.
  explicit ProcessGroup(ProgramHost& only);
  // One process per host, each named; positions are the peer numbers that their edge ports know. A
  // host on which a plan puts nothing may be left out.
  explicit ProcessGroup(std::vector<GroupMember> members);

  int32_t size() const { return static_cast<int32_t>(members_.size()); }

  // The plan for these processes. Errors: those of CompilePlan and CompileFleet.
  absl::StatusOr<FleetProgram> Compile(const PlanContext& context, const ExecutionPlan& plan) const;

  // As ProgramHost. A program is forgotten with its last instance, or if that cannot be made.
  // Bindings go to the process whose device owns the buffer. Errors name the host.
  absl::StatusOr<ProgramId> Install(FleetProgram program);
  absl::StatusOr<InstanceId> Instantiate(ProgramId program, absl::Span<const SlotBinding> bindings);
  absl::Status Release(InstanceId instance);

  // As ProgramHost: input.step counts the group's steps; `edge_step` is the group's own business.
  // Processes may be at different steps, up to kMaxStepsInFlight of the group. If one process
  // refuses the step, it is taken back from the others and does not count.
  absl::Status Launch(InstanceId instance, const StepInput& input);
  // The outputs in the plan's order. If the step fails in one process it is cancelled in the
  // others; the first error that is no consequence of that is returned, with the name of the host.
  absl::StatusOr<StepOutput> Await(int64_t step, Clock::TimePoint deadline);
  absl::Status Cancel(int64_t step);

  // Sums over the processes; steps are those of the process with most.
  HostCounters counters();
  // By process.
  absl::Span<const ProcessStatistics> statistics() const { return statistics_; }

 private:
  // What one process has of a program.
  struct Part {
    int32_t process = 0;
    ProgramId program{};
    std::vector<Slot> slots;
    std::vector<int32_t> inputs;
    std::vector<int32_t> outputs;
    int64_t messages = 0;
    int64_t message_bytes = 0;
  };
  struct GroupProgram {
    std::vector<Part> parts;
    size_t input_count = 0;
    size_t output_count = 0;
    int64_t instances = 0;
  };
  struct GroupInstance {
    ProgramId program{};
    std::vector<InstanceId> parts;
  };
  // A part of a step that was launched.
  struct Running {
    int32_t process = 0;
    int64_t step = 0;                // of its host
    std::vector<int32_t> positions;  // of its outputs among the group's
    bool finished = false;
    absl::Status timed_out;  // what the last wait for it said
    StepOutput output;
  };
  struct InFlight {
    int64_t step = 0;
    size_t output_count = 0;
    std::vector<Running> parts;
    absl::Status failure;
    Clock::TimePoint failed_at;
  };

  bool solo() const { return members_.size() == 1; }
  ProgramHost& host(int32_t process) { return *members_[process].programs; }
  absl::Status InContext(int32_t process, const absl::Status& status) const;
  void Forget(ProgramId program);  // if it has no instance
  absl::StatusOr<InstanceId> InstantiatePart(const Part& part,
                                             absl::Span<const SlotBinding> bindings);
  absl::Status CheckLaunch(const GroupProgram& program, const StepInput& input) const;
  absl::Status LaunchPart(const Part& part, InstanceId instance, const StepInput& input,
                          InFlight& flight);
  // Ends what was launched of a step that is not to be.
  void TakeBack(InFlight& flight);
  // Waits until then for a part. True once it has finished, with its output or error in `flight`.
  bool Look(InFlight& flight, Running& running, Clock::TimePoint until);
  void Count(int32_t process, const StepOutput& output);
  void NoteFailure(InFlight& flight, absl::Status status);
  // Waits for all parts, at most until then; once one has failed the others are cancelled and get
  // some time beyond. True if the step is over.
  bool WaitForAll(InFlight& flight, Clock::TimePoint deadline);
  StepOutput Collect(InFlight& flight);
  std::deque<InFlight>::iterator Find(int64_t step);

  const std::vector<GroupMember> members_;
  const SystemClock clock_;
  TableRoutes routes_;
  std::vector<int64_t> next_step_of_;  // by process
  std::vector<ProcessStatistics> statistics_;
  absl::flat_hash_map<ProgramId, GroupProgram> programs_;
  absl::flat_hash_map<InstanceId, GroupInstance> instances_;
  std::deque<InFlight> in_flight_;
  int64_t next_id_ = 1;         // of programs and instances
  int64_t next_step_ = 1;       // of the group
  int64_t last_edge_step_ = 0;  // never used twice, also if a step is taken back
};

}  // namespace weft
