// Weights of experts in another device's memory, copied in part.
#include <algorithm>

#include "common/graph/graph_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kExperts = 8;
constexpr int64_t kExpertBytes = 4 * 3 * 4;

// Three products by expert on device 1, of weights on device 0 and with the same ids: two of each
// row of three, computed on `ids_device`.
Graph ThreeProducts(std::vector<int32_t>& devices, int32_t ids_device) {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 2, 1}, "x");
  const NodeId raw = builder.Leaf(LeafKind::kInput, 1, DType::kI32, {3, 2, 1, 1}, "raw ids");
  const NodeId routed = builder.Copy(raw, DType::kI32);
  const NodeId ids = builder.View(routed, {2, 2, 1, 1}, {4, 12, 24, 24}, 0);
  devices = {1, ids_device, ids_device, ids_device};
  NodeId sum = kNoNode;
  for (int32_t i = 0; i < 3; ++i) {
    const NodeId weight =
        builder.Leaf(LeafKind::kWeight, i, DType::kF32, {4, 3, kExperts, 1}, "experts");
    const NodeId product = builder.Name(builder.MulMatId(weight, x, ids), "product");
    devices.insert(devices.end(), {0, 1});
    if (i > 0) devices.push_back(1);
    sum = i == 0 ? product : builder.Add(sum, product);
  }
  builder.MarkOutput(sum);
  return *std::move(builder).Finish();
}

class ExpertCopyTest : public ::testing::Test {
 protected:
  void Start(int32_t ids_device) {
    host_.reset();
    bound_ = {};
    std::vector<int32_t> devices;
    graph_ = ThreeProducts(devices, ids_device);
    MachineForTest machine = SeparateMachine(2);
    machine.copy_experts = true;
    const PlacedGraph placed = InsertCopies(graph_, devices, machine);
    program_ = CompileForTest(placed.graph, placed.devices, machine);
    ASSERT_OK(VerifyProgram(program_));
    ASSERT_EQ(Commands().size(), 3u);
    fakes_ = MakeFakeDevices(2, 1);
    oracle_ = std::make_unique<HostGraph>(graph_);
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const LeafAttributes* leaf = graph_.leaf(NodeId{i});
      if (leaf == nullptr || leaf->kind != LeafKind::kWeight) continue;
      std::vector<float> values(4 * 3 * kExperts);
      for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k + 7 * i % 11);
      oracle_->SetF32(NodeId{i}, values);
    }
    bound_ = BindForTest(program_, Borrow(fakes_));
    UploadBound(graph_, *oracle_, bound_);
  }

  void Instantiate() {
    LocalProgramHostOptions options;
    options.devices = Borrow(fakes_);
    ASSERT_OK_AND_ASSIGN(host_, LocalProgramHost::Create(std::move(options)));
    ASSERT_OK_AND_ASSIGN(const ProgramId id, host_->Install(program_));
    ASSERT_OK_AND_ASSIGN(instance_, host_->Instantiate(id, bound_.bindings));
  }

  std::vector<CopyExpertsCommand*> Commands() {
    std::vector<CopyExpertsCommand*> commands;
    for (Command& command : program_.streams[1].commands) {
      auto* experts = std::get_if<CopyExpertsCommand>(&command);
      if (experts != nullptr) commands.push_back(experts);
    }
    return commands;
  }

  absl::StatusOr<StepOutput> Run(const std::vector<int32_t>& ids) {
    oracle_->SetF32(NodeId{0}, {1, 2, 3, 4, 5, 6, 7, 8});
    oracle_->SetI32(NodeId{1}, ids);
    StepInput input;
    input.step = ++step_;
    const std::vector<std::vector<uint8_t>> bytes = InputBytes(graph_, *oracle_);
    input.inputs = Spans(bytes);
    before_ = fakes_[1]->traffic();
    const absl::Status launched = host_->Launch(instance_, input);
    if (!launched.ok()) return launched;
    return host_->Await(step_, Soon());
  }

  void ExpectRight(const std::vector<int32_t>& ids) {
    ASSERT_OK_AND_ASSIGN(const StepOutput output, Run(ids));
    ASSERT_OK(oracle_->Run());
    EXPECT_EQ(output.outputs, OutputBytes(graph_, *oracle_)) << testing::PrintToString(ids);
  }

  NodeId UserOf(NodeId id) const {
    for (int32_t i = 0; i < program_.graph.size(); ++i) {
      const auto& sources = program_.graph.node(NodeId{i}).sources;
      if (std::find(sources.begin(), sources.end(), id) != sources.end()) return NodeId{i};
    }
    return kNoNode;
  }
  int64_t Synchronizations() {
    return fakes_[1]->traffic().synchronizations - before_.synchronizations;
  }
  int64_t CopiedBytes() { return fakes_[1]->traffic().copied_bytes - before_.copied_bytes; }

  Graph graph_;
  Program program_;
  std::vector<std::unique_ptr<FakeDevice>> fakes_;
  std::unique_ptr<HostGraph> oracle_;
  BoundSlots bound_;
  std::unique_ptr<LocalProgramHost> host_;
  InstanceId instance_{};
  int64_t step_ = 0;
  FakeTraffic before_;
};

TEST_F(ExpertCopyTest, OnlyUsedExperts_AreCopied_IdsAreReadOnce) {
  Start(1);
  Instantiate();
  ExpectRight({5, 1, 77, 1, 2, 77});
  EXPECT_EQ(Synchronizations(), 2);                // for the ids, and at the end of the step
  EXPECT_EQ(CopiedBytes(), 3 * 5 * kExpertBytes);  // runs 1-2 and 5, each and one more as padding
  ExpectRight({7, 6, 77, 7, -1, 77});              // nothing follows the last expert
  EXPECT_EQ(CopiedBytes(), 3 * 2 * kExpertBytes);
  ExpectRight({0, 1, 77, 6, 7, 77});
  EXPECT_EQ(CopiedBytes(), 3 * 5 * kExpertBytes);
  ExpectRight({-1, -1, 77, -3, -1, 77});  // all padding: products are zero
  EXPECT_EQ(CopiedBytes(), 0);
}

TEST_F(ExpertCopyTest, IdsOnAnotherDevice_AreReadWhereverTheyAre) {
  for (const bool replica : {true, false}) {
    SCOPED_TRACE(replica ? "the replica on this device" : "the tensor on the other device");
    Start(0);
    step_ = 0;
    const Graph& graph = program_.graph;
    for (CopyExpertsCommand* command : Commands()) {
      // Where the compiler put the ids or what they are a copy of.
      NodeId ids = graph.node(UserOf(command->node)).sources[2];
      ASSERT_EQ(graph.node(ids).op, Op::kCopy);
      if (!replica) ids = graph.node(ids).sources[0];
      command->ids = ids;
      command->ids_place = program_.places[Index(ids)];
    }
    ASSERT_OK(VerifyProgram(program_));
    Instantiate();
    ExpectRight({5, 1, 77, 1, 2, 77});
    EXPECT_EQ(Synchronizations(), 2);
    ExpectRight({3, 3, 77, 4, 4, 77});
  }
}

TEST_F(ExpertCopyTest, IdBeyondTheExperts_EndsTheStepByName_LaterOnesRun) {
  Start(1);
  Instantiate();
  EXPECT_THAT(Run({5, 1, 77, 8, 2, 77}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("step 1, fake1: command"), HasSubstr("(experts of node"),
                             HasSubstr("expert id 8, but there are 8 experts"))));
  EXPECT_EQ(CopiedBytes(), 0);
  ExpectRight({5, 1, 77, 1, 2, 77});
}

}  // namespace
}  // namespace weft
