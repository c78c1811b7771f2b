// Plans whose devices are ranks: where collectives stand, and what their programs compute.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_builder.h"
#include "common/program/loopback_edges.h"
#include "coordinator/engine/process_group.h"
#include "coordinator/scheduler/detached_collectives.h"
#include "coordinator/scheduler/program_compiler.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr int kLayers = 3;
constexpr int kSteps = 5;

// x, then per layer on each rank: (rank + 1) times what it has, summed over the ranks, plus 1. At
// last each rank's [rank + 1, 4] of itself, gathered: an output of rank 0, which a processor
// copies.
class RankedPlan {
 public:
  // The host of each rank; a processor on "local" is the last device. Streams: how often the layers
  // are there beside each other, with the sums of each right behind its terms. Machines: of each
  // rank, or none.
  explicit RankedPlan(const std::vector<std::string>& hosts, int streams = 1,
                      const std::vector<std::string>& machines = {})
      : streams_(streams) {
    for (size_t r = 0; r <= hosts.size(); ++r) {
      const bool cpu = r == hosts.size();
      FakeDeviceOptions options;
      options.name = cpu ? "cpu" : absl::StrCat("gpu", r);
      options.kind = cpu ? DeviceKind::kCpu : DeviceKind::kGpu;
      options.host = cpu ? "local" : hosts[r];
      if (r < machines.size()) options.machine = machines[r];
      options.seed = r + 1;
      options.delays = hosts.size() < 4;
      fakes_.push_back(std::make_unique<FakeDevice>(std::move(options)));
    }
    input.devices = Borrow(fakes_);
    ranks_ = static_cast<int32_t>(hosts.size());
    input.communicators.emplace_back(ranks_);
    std::iota(input.communicators[0].begin(), input.communicators[0].end(), 0);
    BuildGraph();
    input.leafs.resize(graph_.nodes().size());
    input.graph = &graph_;
  }

  absl::Status Make() {
    absl::StatusOr<PlanContext> context = PlanContext::Create(input);
    if (!context.ok()) return context.status();
    context_ = std::make_unique<PlanContext>(*std::move(context));
    absl::StatusOr<ExecutionPlan> plan = MakeExecutionPlan(*context_, {});
    if (!plan.ok()) return plan.status();
    plan_ = *std::move(plan);
    return absl::OkStatus();
  }

  // Runs steps of `group` and checks their output.
  void CheckSteps(ProcessGroup& group, FleetProgram fleet) const {
    ASSERT_OK_AND_ASSIGN(const ProgramId id, group.Install(std::move(fleet)));
    ASSERT_OK_AND_ASSIGN(const InstanceId instance, group.Instantiate(id, {}));
    for (int64_t step = 1; step <= kSteps; ++step) {
      std::vector<float> x(4, static_cast<float>(step));
      std::vector<uint8_t> bytes(x.size() * sizeof(float));
      std::memcpy(bytes.data(), x.data(), bytes.size());
      StepInput launch;
      launch.step = step;
      launch.inputs = {bytes};
      launch.deadline = Soon();
      ASSERT_OK(group.Launch(instance, launch));
      ASSERT_OK_AND_ASSIGN(const StepOutput output, group.Await(step, Soon()));
      float want = static_cast<float>(step);
      const int32_t factors = ranks_ * (ranks_ + 1) / 2;
      const auto sum = static_cast<float>(factors);
      for (int l = 0; l < kLayers; ++l) want = want * sum + 1;
      std::vector<float> values(output.outputs[0].size() / sizeof(float));
      std::memcpy(values.data(), output.outputs[0].data(), output.outputs[0].size());
      EXPECT_EQ(values, std::vector<float>(static_cast<size_t>(4 * sum), want));
    }
  }

  void CheckStepsInOneProcess(const Program& program) const {
    LocalProgramHostOptions options;
    options.devices = input.devices;
    ASSERT_OK_AND_ASSIGN(const auto host, LocalProgramHost::Create(std::move(options)));
    ProcessGroup group(*host);
    FleetProgram fleet;
    fleet.processes.push_back({"", program, {}, {}});
    CheckSteps(group, std::move(fleet));
  }

  const PlanContext& context() const { return *context_; }
  const ExecutionPlan& plan() const { return plan_; }
  const Graph& graph() const { return graph_; }
  const Node& FirstSum() const {
    return *std::find_if(graph_.nodes().begin(), graph_.nodes().end(),
                         [](const Node& node) { return node.op == Op::kAllReduce; });
  }

  PlanInput input;

 private:
  NodeId Pinned(NodeId id, int32_t rank) {
    input.pins.push_back({id, rank});
    return id;
  }

  // (rank + 1) times what each rank has, summed over the ranks.
  void AddSum(GraphBuilder& g, int32_t id, std::vector<NodeId>& values) {
    for (int32_t r = 0; r < ranks_; ++r) {
      values[r] = Pinned(g.Scale(values[r], static_cast<float>(r + 1)), r);
    }
    for (int32_t r = 0; r < ranks_; ++r) {
      const AllReduceAttributes reduce{{id, 0}, DType::kF32};
      values[r] = Pinned(
          g.Name(g.Make(Op::kAllReduce, reduce, {values[r]}), absl::StrCat("sum ", id, " ", r)), r);
    }
  }

  void BuildGraph() {
    GraphBuilder g;
    const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {1, 4, 1, 1}, "x");
    std::vector<std::vector<NodeId>> values(streams_, std::vector<NodeId>(ranks_, x));
    for (int32_t l = 0; l < kLayers; ++l) {
      for (int32_t s = 0; s < streams_; ++s) AddSum(g, l * streams_ + s, values[s]);
      for (int32_t s = 0; s < streams_; ++s) {
        for (int32_t r = 0; r < ranks_; ++r) values[s][r] = Pinned(g.Scale(values[s][r], 1, 1), r);
      }
    }
    AllGatherAttributes gather{
        {kLayers * streams_, 0}, DType::kF32, DType::kF32, 0, {0, 4, 1, 1}, {}};
    for (int32_t r = 0; r < ranks_; ++r) gather.counts.push_back(r + 1);
    gather.ne[0] = std::accumulate(gather.counts.begin(), gather.counts.end(), int64_t{0});
    for (int32_t r = 0; r < ranks_; ++r) {
      // The mean of the streams, which are equal.
      NodeId mean = values[0][r];
      for (int32_t s = 1; s < streams_; ++s) mean = Pinned(g.Add(mean, values[s][r]), r);
      mean = Pinned(g.Scale(mean, 1.0f / static_cast<float>(streams_)), r);
      const NodeId part =
          Pinned(g.Make(Op::kRepeat, RepeatAttributes{{r + 1, 4, 1, 1}}, {mean}), r);
      const NodeId all = Pinned(g.Name(g.Make(Op::kAllGather, gather, {part}), "all"), r);
      if (r == 0) g.MarkOutput(Pinned(g.Scale(all, 1), ranks_));
    }
    graph_ = *std::move(g).Finish();
  }

  std::vector<std::unique_ptr<FakeDevice>> fakes_;
  const int32_t streams_;
  int32_t ranks_ = 0;
  Graph graph_;
  std::unique_ptr<PlanContext> context_;
  ExecutionPlan plan_;
};

std::vector<const CollectiveCommand*> CollectivesOf(const Program& program, size_t stream) {
  std::vector<const CollectiveCommand*> found;
  for (const Command& command : program.streams[stream].commands) {
    const auto* collective = std::get_if<CollectiveCommand>(&command);
    if (collective != nullptr) found.push_back(collective);
  }
  return found;
}

// Runs the programs of a plan, a process per host of `names`, and counts what they send each other.
void CheckProcesses(const RankedPlan& plan, const std::vector<std::string>& names,
                    FleetProgram fleet) {
  const auto processes = static_cast<int32_t>(names.size());
  LoopbackEdges edges({.processes = processes});
  LoopbackEdges collectives({.processes = processes});
  std::vector<std::unique_ptr<LocalProgramHost>> hosts;
  std::vector<GroupMember> members;
  for (int32_t p = 0; p < processes; ++p) {
    ASSERT_OK(VerifyProgram(fleet.processes[p].program));
    LocalProgramHostOptions options;
    for (Device* device : plan.input.devices) {
      if (device->host() == names[p]) options.devices.push_back(device);
    }
    options.edges = &edges.port(p);
    options.collectives = &collectives.port(p);
    ASSERT_OK_AND_ASSIGN(auto host, LocalProgramHost::Create(std::move(options)));
    members.push_back({names[p], host.get()});
    hosts.push_back(std::move(host));
  }
  ProcessGroup group(std::move(members));
  const FleetProgram copy = fleet;
  plan.CheckSteps(group, std::move(fleet));
  for (int32_t from = 0; from < processes; ++from) {
    for (int32_t to = 0; to < processes; ++to) {
      const RankTraffic traffic = copy.Ranks(from, to);
      EXPECT_EQ(collectives.traffic(from, to).messages, kSteps * traffic.messages);
      EXPECT_EQ(collectives.traffic(from, to).bytes, kSteps * traffic.bytes);
    }
  }
}

TEST(PlanCollectives, OneProcess_EveryRankPerformsAllOfThemInOrder) {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const bool pipeline : {false, true}) {
      RankedPlan plan(std::vector<std::string>(ranks, "local"));
      plan.input.options.pipeline = pipeline;
      ASSERT_OK(plan.Make());
      ASSERT_OK_AND_ASSIGN(const Program program, CompilePlan(plan.context(), plan.plan()));
      ASSERT_OK(VerifyProgram(program));
      for (int r = 0; r < ranks; ++r) EXPECT_EQ(CollectivesOf(program, r).size(), kLayers + 1u);
      plan.CheckStepsInOneProcess(program);
    }
  }
}

TEST(PlanCollectives, ProcessPerHost_RanksMeetOverPorts) {
  RankedPlan plan({"a", "a", "b", "local"});
  ASSERT_OK(plan.Make());
  const std::vector<std::string> names = {"a", "b", "local"};
  ASSERT_OK_AND_ASSIGN(FleetProgram fleet, CompileFleet(plan.context(), plan.plan(), names));
  const std::vector<CommunicatorRank> of_b = {{0, -1, 0}, {0, -1, 0}, {-1, 0, 1}, {2, -1, 2}};
  EXPECT_EQ(fleet.processes[1].program.communicators[0].ranks, of_b);
  for (int32_t from = 0; from < 3; ++from) {
    for (int32_t to = 0; to < 3; ++to) {
      EXPECT_EQ(fleet.Ranks(from, to).messages > 0, from != to);
    }
  }
  CheckProcesses(plan, names, std::move(fleet));
}

// The hosts of a machine are hosts of a collective together; each is a process all the same.
TEST(PlanCollectives, WorkersOfOneMachine_SumBeforeTheySendToOthers) {
  const std::vector<std::string> names = {"w0", "w1", "w2", "w3", "local"};
  for (const std::vector<std::string>& machines : {std::vector<std::string>{"m", "m", "n", "n"},
                                                   std::vector<std::string>{"m", "n", "m", "n"}}) {
    RankedPlan plan({names.begin(), names.end() - 1}, 1, machines);
    const int32_t second = machines[1] == "m" ? 0 : 1;
    const std::vector<int32_t> grouped = {0, second, 1 - second, 1};
    std::set<std::string> orders;
    std::set<CollectiveAlgorithm> algorithms;
    for (const LinkModels& links :
         {LinkModels{{1, 1e12}, {1e6, 1}}, LinkModels{{9, 1e9}, {9, 1e9}},
          LinkModels{{1, 1e12}, {1, 1e3}}, LinkModels{{1e3, 1e3}, {1, 1e9}}}) {
      plan.input.communicator_links = {links};
      ASSERT_OK(plan.Make());
      EXPECT_EQ(plan.context().HostsOf(0), grouped);
      const CollectiveAlgorithm algorithm = plan.context().AlgorithmOf(plan.FirstSum());
      algorithms.insert(algorithm);
      orders.insert(SumOrder(algorithm, grouped));
      ASSERT_OK_AND_ASSIGN(FleetProgram fleet, CompileFleet(plan.context(), plan.plan(), names));
      for (int32_t p = 0; p < 4; ++p) {
        const std::vector<CommunicatorRank>& ranks =
            fleet.processes[p].program.communicators[0].ranks;
        for (int32_t r = 0; r < 4; ++r) {
          EXPECT_EQ(ranks[r], (CommunicatorRank{r == p ? -1 : r, r == p ? 0 : -1, grouped[r]}));
        }
      }
      CheckProcesses(plan, names, std::move(fleet));
    }
    EXPECT_EQ(orders.size(), 1u);
    // Of ranks in turn nothing else sums in that order. Of ranks in a row doubling does, too: its
    // first partners are beside each other.
    const bool hosts_first = !algorithms.contains(CollectiveAlgorithm::kRecursiveDoubling) &&
                             !algorithms.contains(CollectiveAlgorithm::kByParts);
    EXPECT_EQ(hosts_first, second == 1);
  }
}

// What others need is known to them before a rank waits, and nothing is copied before it.
TEST(PlanCollectives, EachIsASplitOfItsOwn_InPlace) {
  RankedPlan plan({"local", "local"});
  ASSERT_OK(plan.Make());
  int found = 0;
  for (const ScheduledSplit& split : plan.plan().scheduled.splits) {
    for (const NodeId id : split.nodes) {
      const Node& node = plan.plan().scheduled.graph.node(id);
      if (!IsCollective(node.op)) continue;
      ++found;
      EXPECT_EQ(split.nodes.size(), 1u);
      if (node.op != Op::kAllReduce) continue;
      EXPECT_EQ(plan.plan().memory.places[Index(id)],
                plan.plan().memory.places[Index(node.sources[0])]);
    }
  }
  EXPECT_EQ(found, 2 * (kLayers + 1));
}

int64_t DetachedOf(const Program& program, size_t stream) {
  const auto collectives = CollectivesOf(program, stream);
  return std::count_if(collectives.begin(), collectives.end(),
                       [](const CollectiveCommand* collective) { return collective->detached; });
}

// Two streams beside each other: while the sums of one travel, the other computes.
TEST(PlanCollectives, Overlap_SumsTravelWhileOthersCompute) {
  for (const int ranks : {2, 3}) {
    for (const bool pipeline : {false, true}) {
      RankedPlan plan(std::vector<std::string>(ranks, "local"), 2);
      plan.input.options.pipeline = pipeline;
      plan.input.options.overlap = OverlapPolicy::kOn;
      ASSERT_OK(plan.Make());
      ASSERT_OK_AND_ASSIGN(const Program program, CompilePlan(plan.context(), plan.plan()));
      ASSERT_OK(VerifyProgram(program));
      // All but the last layer's second, whose result comes next.
      for (int r = 0; r < ranks; ++r) EXPECT_GE(DetachedOf(program, r), 2 * kLayers - 1);
      plan.CheckStepsInOneProcess(program);
    }
  }
}

TEST(PlanCollectives, Overlap_OnlyWhereAskedFor_AndWhereThereIsSomethingToDo) {
  RankedPlan unasked({"local", "local"}, 2);
  ASSERT_OK(unasked.Make());
  EXPECT_EQ(FindDetached(unasked.context(), unasked.plan().scheduled).size(), 0u);
  RankedPlan alone({"local", "local"});
  alone.input.options.overlap = OverlapPolicy::kOn;
  ASSERT_OK(alone.Make());
  EXPECT_EQ(FindDetached(alone.context(), alone.plan().scheduled).size(), 0u);
}

TEST(PlanCollectives, Overlap_ObservedSums_AreWaitedFor) {
  RankedPlan plan({"local", "local"}, 2);
  plan.input.options.overlap = OverlapPolicy::kOn;
  for (int32_t i = 0; i < plan.graph().size(); ++i) {
    if (plan.graph().node(NodeId{i}).op == Op::kAllReduce) {
      plan.input.options.observed.push_back(NodeId{i});
    }
  }
  ASSERT_OK(plan.Make());
  EXPECT_EQ(FindDetached(plan.context(), plan.plan().scheduled).size(), 0u);
}

TEST(PlanCollectives, Algorithm_FollowsTheLinks) {
  RankedPlan plan({"a", "a", "a", "b", "b", "b"});
  plan.input.communicator_links = {LinkModels{{1, 1e12}, {1e6, 1}}};
  ASSERT_OK(plan.Make());
  EXPECT_EQ(plan.context().AlgorithmOf(plan.FirstSum()),
            CollectiveAlgorithm::kHostsFirstRecursiveDoubling);
}

TEST(PlanCollectives, UnsoundInput_IsAnError) {
  const auto error = [](void (*change)(PlanInput&)) {
    RankedPlan plan({"local", "local"});
    change(plan.input);
    return plan.Make();
  };
  EXPECT_THAT(error([](PlanInput& input) { input.communicators.clear(); }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no communicator 0")));
  EXPECT_THAT(error([](PlanInput& input) {
                input.communicators[0] = {0, 0};
              }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("communicator 0")));
  EXPECT_THAT(error([](PlanInput& input) {
                input.communicators[0] = {0, 3};
              }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("communicator 0")));
  EXPECT_THAT(error([](PlanInput& input) { input.communicators[0].clear(); }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("communicator 0")));
  EXPECT_THAT(error([](PlanInput& input) { input.pins.clear(); }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not pinned to a rank")));
  EXPECT_THAT(error([](PlanInput& input) {
                for (Pin& pin : input.pins) pin.device = 2;
              }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not pinned to a rank")));
}

}  // namespace
}  // namespace weft
