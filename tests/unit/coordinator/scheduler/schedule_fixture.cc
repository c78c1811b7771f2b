#include "tests/unit/coordinator/scheduler/schedule_fixture.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/program/loopback_edges.h"
#include "coordinator/engine/process_group.h"
#include "coordinator/scheduler/execution_plan.h"
#include "coordinator/scheduler/plan_text.h"
#include "coordinator/scheduler/program_compiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/program_fixture.h"
#include "tests/unit/coordinator/scheduler/plan_checks.h"
#include "tests/unit/coordinator/scheduler/plan_oracle.h"
#include "tests/unit/coordinator/scheduler/weight_crossings.h"

namespace weft {
namespace {

using Bytes = std::vector<uint8_t>;

void Count(const ExecutionPlan& plan, ScheduleStatistics& statistics) {
  ++statistics.plans;
  for (const Assignment& assignment : plan.plan.assignments) {
    statistics.causes.insert(assignment.cause);
  }
  statistics.splits += static_cast<int64_t>(plan.plan.splits.size());
  for (const Replica& replica : plan.plan.replicas) {
    statistics.staged += replica.kind >= ReplicaKind::kWeight ? 1 : 0;
    statistics.experts += replica.kind == ReplicaKind::kExperts ? 1 : 0;
  }
  for (const PoolPlan& pool : plan.memory.pools) {
    statistics.chunks += std::max<int64_t>(static_cast<int64_t>(pool.chunk_bytes.size()) - 1, 0);
  }
  statistics.pipelined += plan.copies > 1 ? 1 : 0;
  statistics.fused += plan.scheduled.fused;
  statistics.resolved += plan.scheduled.resolved;
}

// Fills the bound slots from `host`; a leaf that nothing reads has none.
void Upload(const Graph& graph, HostGraph& host, const BoundSlots& bound) {
  for (const SlotBinding& binding : bound.bindings) {
    for (int32_t i = 0; i < graph.size(); ++i) {
      const LeafAttributes* leaf = graph.leaf(NodeId{i});
      if (leaf == nullptr || SlotKindOf(leaf->kind) != binding.kind || leaf->id != binding.id) {
        continue;
      }
      const auto bytes = host.bytes(NodeId{i});
      ASSERT_OK(binding.buffer->Set(binding.offset, bytes.data(), bytes.size()));
    }
  }
}

// The hosts of the devices, each once.
std::vector<std::string> HostsOf(const PlanInput& input) {
  std::vector<std::string> hosts;
  for (const Device* device : input.devices) {
    if (std::find(hosts.begin(), hosts.end(), device->host()) == hosts.end()) {
      hosts.push_back(device->host());
    }
  }
  return hosts;
}

// A plan on its devices beside the oracle. `program` is the whole of it, for what is bound.
class Run {
 public:
  Run(Random& random, const PlanContext& context, const ExecutionPlan& plan, const Program& program)
      : random_(random),
        input_(context.input()),
        graph_(context.graph()),
        oracle_(context, plan),
        bound_(BindForTest(program, input_.devices)) {
    FillLeafs(random, graph_, oracle_.leafs());
    Upload(graph_, oracle_.leafs(), bound_);
  }

  // All devices in one process.
  void StartWhole(const Program& program) {
    ASSERT_NO_FATAL_FAILURE(AddProcess(input_.devices, nullptr));
    group_ = std::make_unique<ProcessGroup>(*hosts_.back());
    FleetProgram fleet;
    fleet.processes.push_back({"", program, {}, {}});
    Instantiate(std::move(fleet));
  }

  // A process per host.
  void StartFleet(FleetProgram fleet) {
    const auto count = static_cast<int32_t>(fleet.processes.size());
    edges_ = std::make_unique<LoopbackEdges>(LoopbackOptions{.processes = count});
    std::vector<GroupMember> members;
    for (int32_t p = 0; p < count; ++p) {
      std::vector<Device*> devices;
      for (Device* device : input_.devices) {
        if (device->host() == fleet.processes[p].host) devices.push_back(device);
      }
      ASSERT_NO_FATAL_FAILURE(AddProcess(std::move(devices), &edges_->port(p)));
      members.push_back({fleet.processes[p].host, hosts_.back().get()});
    }
    group_ = std::make_unique<ProcessGroup>(std::move(members));
    Instantiate(std::move(fleet));
  }

  // Each edge carried one message per step, and none is left.
  void CheckTraffic(const FleetProgram& fleet) {
    const auto count = static_cast<int32_t>(fleet.processes.size());
    for (int32_t from = 0; from < count; ++from) {
      EXPECT_EQ(edges_->waiting(from), 0);
      for (int32_t to = 0; to < count; ++to) {
        EXPECT_EQ(edges_->traffic(from, to).messages, step_ * fleet.Messages(from, to));
        EXPECT_EQ(edges_->traffic(from, to).bytes, step_ * fleet.MessageBytes(from, to));
      }
    }
  }

  void Steps(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_NO_FATAL_FAILURE(LaunchNext());
      const bool full = wanted_.size() == static_cast<size_t>(kMaxStepsInFlight);
      while (!wanted_.empty() && (full || random_.Between(0, 3) == 0)) {
        ASSERT_NO_FATAL_FAILURE(AwaitOldest());
        if (wanted_.size() < 2) break;
      }
    }
    while (!wanted_.empty()) ASSERT_NO_FATAL_FAILURE(AwaitOldest());
  }

  // The observer ends a step; the next one runs.
  void Stop(NodeId at, ScheduleStatistics& statistics) {
    {
      MutexLock lock(mutex_);
      stopped_step_ = step_ + 1;
      stopped_tag_ = Index(at);
    }
    ASSERT_NO_FATAL_FAILURE(LaunchNext());
    EXPECT_EQ(group_->Await(step_, Soon()).status().code(), absl::StatusCode::kAborted);
    ASSERT_NO_FATAL_FAILURE(LaunchNext());
    EXPECT_OK(group_->Await(step_, Soon()));
    wanted_.clear();
    ++statistics.aborted;
  }

  int64_t seen_count() {
    MutexLock lock(mutex_);
    return static_cast<int64_t>(seen_.size());
  }

 private:
  struct Wanted {
    int64_t step = 0;
    std::vector<Bytes> outputs;
    std::map<int32_t, Bytes> observed;
  };

  void AddProcess(std::vector<Device*> devices, EdgePort* edges) {
    LocalProgramHostOptions options;
    options.devices = std::move(devices);
    options.edges = edges;
    // With one program every process has a part in each step, or none: their numbers agree.
    options.observer = [this](int64_t step, int32_t tag, absl::Span<const uint8_t> bytes) {
      MutexLock lock(mutex_);
      seen_[{step, tag}] = Bytes(bytes.begin(), bytes.end());
      return step != stopped_step_ || tag != stopped_tag_;
    };
    auto host = LocalProgramHost::Create(std::move(options));
    ASSERT_OK(host);
    hosts_.push_back(*std::move(host));
  }

  void Instantiate(FleetProgram fleet) {
    ASSERT_OK_AND_ASSIGN(const ProgramId id, group_->Install(std::move(fleet)));
    ASSERT_OK_AND_ASSIGN(instance_, group_->Instantiate(id, bound_.bindings));
  }

  void NewInputs() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const LeafAttributes* leaf = graph_.leaf(NodeId{i});
      if (leaf == nullptr || leaf->kind == LeafKind::kWeight || leaf->kind == LeafKind::kCache) {
        continue;
      }
      FillLeaf(random_, graph_, NodeId{i}, oracle_.leafs());
    }
  }

  void LaunchNext() {
    NewInputs();
    std::vector<Bytes> bytes = InputBytes(graph_, oracle_.leafs());
    StepInput launch;
    launch.step = ++step_;
    launch.inputs = Spans(bytes);
    launch.table_updates = TableContent(graph_, oracle_.leafs());
    ASSERT_OK(group_->Launch(instance_, launch));
    for (Bytes& input : bytes) std::fill(input.begin(), input.end(), uint8_t{0xFF});  // INV-B13
    ASSERT_OK(oracle_.Step());
    ASSERT_EQ(oracle_.Disagreement(), "") << "step " << step_;
    wanted_.push_back({step_, oracle_.outputs(), {}});
    for (const NodeId id : input_.options.observed) {
      const auto value = oracle_.Value(id);
      ASSERT_TRUE(value.has_value()) << "observed node " << Index(id) << " is not computed";
      wanted_.back().observed[Index(id)] = *value;
    }
  }

  void AwaitOldest() {
    const Wanted want = std::move(wanted_.front());
    wanted_.pop_front();
    ASSERT_OK_AND_ASSIGN(const StepOutput output, group_->Await(want.step, Soon()));
    ASSERT_EQ(output.outputs.size(), want.outputs.size());
    for (size_t i = 0; i < want.outputs.size(); ++i) {
      ASSERT_TRUE(output.outputs[i] == want.outputs[i]) << "step " << want.step << ", output " << i;
    }
    MutexLock lock(mutex_);
    for (const auto& [tag, bytes] : want.observed) {
      const auto seen = seen_.find({want.step, tag});
      ASSERT_TRUE(seen != seen_.end()) << "node " << tag << " was not observed";
      ASSERT_TRUE(seen->second == bytes) << "step " << want.step << ", observed node " << tag;
    }
  }

  Random& random_;
  const PlanInput& input_;
  const Graph& graph_;
  PlanOracle oracle_;
  const BoundSlots bound_;
  Mutex mutex_;
  std::map<std::pair<int64_t, int32_t>, Bytes> seen_ ABSL_GUARDED_BY(mutex_);
  int64_t stopped_step_ ABSL_GUARDED_BY(mutex_) = -1;
  int32_t stopped_tag_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<LoopbackEdges> edges_;  // outlive the hosts
  std::vector<std::unique_ptr<LocalProgramHost>> hosts_;
  std::unique_ptr<ProcessGroup> group_;
  InstanceId instance_{};
  int64_t step_ = 0;
  std::deque<Wanted> wanted_;  // of the steps in flight
};

// Each tensor goes to a machine once, unless replicas are not to be used again.
void CheckCrossings(const PlanContext& context, const ExecutionPlan& plan) {
  std::set<std::pair<NodeId, int32_t>> seen;
  for (const ScheduledSplit& split : plan.scheduled.splits) {
    for (const ScheduledCopy& copy : split.copies) {
      const NodeId source = plan.scheduled.graph.node(copy.node).sources[0];
      if (context.SameHost(plan.scheduled.devices[Index(source)], split.device)) continue;
      EXPECT_TRUE(seen.emplace(source, context.HostIndex(split.device)).second)
          << NodeText(plan.scheduled.graph, source);
    }
  }
}

// What a fleet of one host runs is the plan's own program.
void CheckFleetOfOne(const PlanContext& context, const ExecutionPlan& plan,
                     const Program& program) {
  const std::vector<std::string> hosts = HostsOf(context.input());
  if (hosts.size() != 1) return;
  ASSERT_OK_AND_ASSIGN(const FleetProgram fleet, CompileFleet(context, plan, hosts));
  EXPECT_TRUE(fleet.processes[0].program == program);
  EXPECT_TRUE(fleet.edges.empty());
  for (size_t i = 0; i < fleet.processes[0].inputs.size(); ++i) {
    EXPECT_EQ(fleet.processes[0].inputs[i], static_cast<int32_t>(i));
  }
  for (size_t i = 0; i < fleet.processes[0].outputs.size(); ++i) {
    EXPECT_EQ(fleet.processes[0].outputs[i], static_cast<int32_t>(i));
  }
}

// Asks a context for things in an order that no pass asks in.
void AskAround(Random& random, const PlanContext& context) {
  for (int i = 0; i < 100 && context.graph().size() > 0; ++i) {
    const auto d = static_cast<int32_t>(random.Between(0, context.device_count() - 1));
    const NodeId id{static_cast<int32_t>(random.Between(0, context.graph().size() - 1))};
    context.Supports(d, id);
    context.ReadsType(d, context.device(context.device_count() - 1 - d).buffer_type());
    if (context.graph().Executes(id)) context.Wants(d, id);
  }
}

void PlanTwice(Random& random, const PlanContext& context, ExecutionPlan& plan, Program& program) {
  ASSERT_OK_AND_ASSIGN(plan, MakeExecutionPlan(context, {}));
  SCOPED_TRACE(PlanText(context, plan));
  EXPECT_EQ(PlanFault(context, plan), "");
  ASSERT_OK_AND_ASSIGN(program, CompilePlan(context, plan));
  ASSERT_OK(VerifyProgram(program));
  ASSERT_NO_FATAL_FAILURE(CheckFleetOfOne(context, plan, program));
  ASSERT_OK_AND_ASSIGN(const PlanContext other, PlanContext::Create(context.input()));
  AskAround(random, other);
  ASSERT_OK_AND_ASSIGN(const ExecutionPlan again, MakeExecutionPlan(other, {}));
  EXPECT_TRUE(again.plan == plan.plan);
  EXPECT_TRUE(again.memory == plan.memory);
  EXPECT_EQ(PlanText(other, again), PlanText(context, plan));
  ASSERT_OK_AND_ASSIGN(const Program same, CompilePlan(other, again));
  EXPECT_TRUE(same == program);
}

}  // namespace

void CheckPlan(Random& random, const PlanInput& input, ScheduleStatistics& statistics) {
  ASSERT_OK_AND_ASSIGN(const PlanContext context, PlanContext::Create(input));
  ExecutionPlan plan;
  Program program;
  ASSERT_NO_FATAL_FAILURE(PlanTwice(random, context, plan, program));
  Count(plan, statistics);
}

void CheckPlanAgainstOracle(Random& random, const PlanInput& input, int steps,
                            ScheduleStatistics& statistics) {
  ASSERT_OK_AND_ASSIGN(const PlanContext context, PlanContext::Create(input));
  ExecutionPlan plan;
  Program program;
  ASSERT_NO_FATAL_FAILURE(PlanTwice(random, context, plan, program));
  Count(plan, statistics);
  SCOPED_TRACE(PlanText(context, plan));
  const std::vector<NodeId>& observed = input.options.observed;
  Run run(random, context, plan, program);
  ASSERT_NO_FATAL_FAILURE(run.StartWhole(program));
  ASSERT_NO_FATAL_FAILURE(run.Steps(steps));
  if (!observed.empty()) run.Stop(observed[observed.size() / 2], statistics);
  statistics.observed += run.seen_count();

  const std::vector<std::string> hosts = HostsOf(input);
  if (hosts.size() < 2) return;
  const absl::StatusOr<FleetProgram> fleet = CompileFleet(context, plan, hosts);
  const std::set<std::string> crossings = WeightCrossings(context, plan.plan);
  if (!crossings.empty()) {
    EXPECT_THAT(fleet, StatusIs(absl::StatusCode::kInvalidArgument,
                                testing::HasSubstr("of another machine in each step")));
    ++statistics.refused;
    for (const std::string& reason : crossings) ++statistics.reasons[reason];
    return;
  }
  ASSERT_OK(fleet);
  if (context.Enabled(Rule::kReuseReplica)) CheckCrossings(context, plan);
  ++statistics.fleets;
  statistics.edges += static_cast<int64_t>(fleet->edges.size());
  Run apart(random, context, plan, program);
  ASSERT_NO_FATAL_FAILURE(apart.StartFleet(*fleet));
  ASSERT_NO_FATAL_FAILURE(apart.Steps(steps));
  apart.CheckTraffic(*fleet);
  if (!observed.empty()) apart.Stop(observed[observed.size() / 2], statistics);
}

}  // namespace weft
