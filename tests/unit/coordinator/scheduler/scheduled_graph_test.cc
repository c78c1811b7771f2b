// The graph as devices run it.
#include "coordinator/scheduler/scheduled_graph.h"

#include "common/program/program.h"
#include "coordinator/scheduler/program_compiler.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/scheduler/plan_rig.h"

namespace weft {
namespace {

// What was written into the second half of a tensor begins at 0 in the copy of it.
TEST(ScheduledGraph, ViewOfACopiedPart_CountsFromTheCopy) {
  PlanRig rig({Gpu("gpu"), Gpu("other"), Cpu("cpu")});
  const NodeId whole = rig.g.MulMat(rig.Weight("w", {8, 8, 1, 1}, 0), rig.Input("x", {8, 8, 1, 1}));
  const NodeId half = rig.g.View(whole, {8, 4, 1, 1}, rig.g.layout(whole).nb, int64_t{4 * 8 * 4});
  const NodeId written = rig.g.Make(
      Op::kSetRows, {},
      {half, rig.Input("rows", {8, 2, 1, 1}), rig.Input("ids", {2, 1, 1, 1}, DType::kI32)});
  const NodeId shown = rig.g.Reshape(written, {16, 2, 1, 1});
  const NodeId scaled = rig.g.Scale(shown, 2);
  rig.g.MarkOutput(scaled);
  rig.input.pins = {{scaled, 1}};
  ASSERT_OK(rig.Plan());
  ASSERT_EQ(rig.result().plan.replicas.back().source, written);
  const ScheduledGraph& scheduled = rig.result().scheduled;
  const NodeId view = scheduled.graph.node(scheduled.outputs[0]).sources[0];
  EXPECT_EQ(scheduled.graph.node(view).view_offset, 0);
  EXPECT_EQ(scheduled.graph.node(scheduled.graph.Root(view)).op, Op::kCopy);
  ASSERT_OK_AND_ASSIGN(const Program program, CompilePlan(rig.context(), rig.result()));
  EXPECT_OK(VerifyProgram(program));
}

}  // namespace
}  // namespace weft
