// Pass 4: everything gets a device.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/scheduler/plan_rig.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Extents kVector = {8, 1, 1, 1};
constexpr Extents kMatrix = {8, 8, 1, 1};

TEST(Inherit, FreeLeafs_GoToTheirFirstReader) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId shared = rig.Free("shared", kVector);
  const NodeId a =
      rig.g.Add(rig.g.MulMat(rig.Weight("a", kMatrix, 0), rig.Input("x", kVector)), shared);
  const NodeId b = rig.g.Add(rig.g.MulMat(rig.Weight("b", kMatrix, 1), a), shared);
  rig.g.MarkOutput(b);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(shared), "gpu 4.cur");
  rig.input.options.disabled.Add(Rule::kInherit);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(shared), "cpu 4.any");
}

TEST(Inherit, Views_StayWithTheirTensor) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId a = rig.g.MulMat(rig.Weight("a", kMatrix, 0), rig.Input("x", kMatrix));
  const NodeId turned = rig.g.Transpose(a);
  const NodeId shaped = rig.g.Reshape(a, {64, 1, 1, 1});
  const NodeId of_view = rig.g.Reshape(shaped, {4, 16, 1, 1});
  const NodeId b = rig.g.Add(rig.g.Contiguous(turned), rig.Weight("b", kVector, 1));
  rig.g.MarkOutput(rig.g.Add(rig.g.Reshape(of_view, kMatrix), b));
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(turned), "gpu 4.vsrc");
  EXPECT_EQ(rig.At(shaped), "gpu 4.vsrc");
  EXPECT_EQ(rig.At(of_view), "gpu 4.vsrc");
  EXPECT_EQ(rig.At(b), "cpu 1.wgt1");
}

TEST(Inherit, SetRows_FollowsItsRoot) {
  PlanRig rig({Gpu("gpu"), Cpu("cpu")});
  const NodeId target = rig.g.Scale(rig.Input("x", kMatrix), 2);
  const NodeId written =
      rig.g.Make(Op::kSetRows, {},
                 {target, rig.Input("rows", kVector), rig.Input("ids", {1, 1, 1, 1}, DType::kI32)});
  rig.g.MarkOutput(written);
  rig.input.options.disabled.Add(Rule::kGuess);
  ASSERT_OK(rig.Plan());
  EXPECT_EQ(rig.At(target), "gpu 4.any");
  EXPECT_EQ(rig.At(written), "gpu 4.vsrc");
}

TEST(Inherit, NobodyRunsIt_TheErrorNamesOpAndRefusals) {
  RigDevice cpu = Cpu("cpu");
  cpu.options.supports = RefuseOps({Op::kCumSum});
  RigDevice gpu = Gpu("gpu");
  gpu.options.supports = [](const Graph& graph, NodeId id) -> Support {
    if (graph.node(id).op != Op::kCumSum) return absl::OkStatus();
    return absl::UnimplementedError("its rows are too short");
  };
  PlanRig rig({gpu, cpu});
  rig.g.MarkOutput(rig.Named(rig.g.Make(Op::kCumSum, {}, {rig.Input("x", kVector)}), "sums"));
  const absl::Status status = rig.Plan();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("no device runs node 1 (cumsum 'sums')"),
            HasSubstr("gpu: its rows are too short"), HasSubstr("cpu: no kernel of cumsum")));
}

// What a device can run but for a write into the result is refused with that reason.
TEST(Inherit, NobodyRunsWhatWritesIntoIt) {
  RigDevice gpu = Gpu("gpu");
  gpu.options.supports = RefuseOps({Op::kSetRows});
  RigDevice cpu = Cpu("cpu");
  cpu.options.supports = RefuseOps({Op::kScale});
  PlanRig rig({gpu, cpu});
  const NodeId target = rig.Named(rig.g.Scale(rig.Input("x", kMatrix), 2), "target");
  rig.g.MarkOutput(rig.Named(
      rig.g.Make(Op::kSetRows, {},
                 {target, rig.Input("rows", kVector), rig.Input("ids", {1, 1, 1, 1}, DType::kI32)}),
      "written"));
  const absl::Status status = rig.Plan();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("no device runs node 1 (scale 'target') (gpu: node 4 (set_rows "
                              "'written') writes into it: no kernel of set_rows"),
                    HasSubstr("cpu: no kernel of scale")));
}

// Views do not change how a graph is cut (INV-B12).
TEST(Inherit, InsertedViews_LeaveTheCutAlone) {
  std::string without;
  for (const int views : {0, 1, 3}) {
    PlanRig rig({Gpu("gpu"), Cpu("cpu")});
    NodeId at = rig.Input("x", kMatrix);
    for (int layer = 0; layer < 6; ++layer) {
      const NodeId w = rig.Weight("w", kMatrix, layer % 3 == 2 ? 1 : 0);
      for (int v = 0; v < views; ++v) {
        at = rig.g.Reshape(rig.g.Reshape(at, {64, 1, 1, 1}), kMatrix);
      }
      at = rig.Named(rig.g.MulMat(w, at), "n" + std::to_string(layer));
    }
    rig.g.MarkOutput(at);
    ASSERT_OK(rig.Plan());
    if (views == 0) without = rig.Splits();
    EXPECT_EQ(rig.Splits(), without);
  }
  EXPECT_EQ(
      without,
      "gpu [input x]: n0 n1; cpu [tensor n1]: n2; gpu [tensor n2]: n3 n4; cpu [tensor n4]: n5");
}

}  // namespace
}  // namespace weft
