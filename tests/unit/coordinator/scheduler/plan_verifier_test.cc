// Plans with one fault each.
#include "coordinator/scheduler/plan_verifier.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/scheduler/plan_rig.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr Extents kVector = {8, 1, 1, 1};
constexpr Extents kMatrix = {8, 8, 1, 1};

class VerifyPlan : public testing::Test {
 protected:
  VerifyPlan() {
    const NodeId x = rig_.Input("x", kVector);
    const NodeId a = rig_.Named(rig_.g.MulMat(rig_.Weight("wa", kMatrix, 0), x), "a");
    const NodeId b = rig_.Named(rig_.g.MulMat(rig_.Weight("wb", kMatrix, 1), a), "b");
    const NodeId c = rig_.Named(rig_.g.MulMat(rig_.Weight("wc", kMatrix, 0), b), "c");
    rig_.g.MarkOutput(rig_.Named(rig_.g.MulMat(rig_.Weight("wd", kMatrix, 1), c), "d"));
    rig_.input.pins = {{a, 0}};
    rig_.input.options.staged_bytes_limit = 256;
    EXPECT_OK(rig_.Plan());
    plan_ = rig_.result().plan;
    a_ = Index(a);
  }

  std::string Error() const {
    absl::Status status = VerifyAssignments(rig_.context(), plan_);
    if (status.ok()) status = VerifyCut(rig_.context(), plan_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    return std::string(status.message());
  }

  static RigDevice NoSilu() {
    RigDevice gpu = Gpu("gpu");
    gpu.options.supports = RefuseOps({Op::kUnary});
    return gpu;
  }

  PlanRig rig_{{NoSilu(), Cpu("cpu")}};
  Plan plan_;
  int32_t a_ = 0;
};

TEST_F(VerifyPlan, TheUnchangedPlanIsFine) {
  EXPECT_OK(VerifyAssignments(rig_.context(), plan_));
  EXPECT_OK(VerifyCut(rig_.context(), plan_));
}

TEST_F(VerifyPlan, Assignments) {
  plan_.assignments[a_].device = 1;
  EXPECT_THAT(Error(), HasSubstr("(mul_mat 'a'): left its pin"));
  plan_.assignments[a_].device = 0;
  plan_.assignments[a_ + 2].device = 2;
  EXPECT_THAT(Error(), HasSubstr("has no such device"));
  plan_.assignments[a_ + 2].device = kNoDevice;
  EXPECT_THAT(Error(), HasSubstr("(mul_mat 'b'): has no device"));
}

TEST_F(VerifyPlan, Splits) {
  const Plan good = plan_;
  plan_.splits[1].begin += 1;
  EXPECT_THAT(Error(), HasSubstr("split 1 is ["));
  plan_ = good;
  plan_.splits.pop_back();
  EXPECT_THAT(Error(), HasSubstr("the splits end at node"));
  plan_ = good;
  plan_.splits[1].device = 0;
  EXPECT_THAT(Error(), HasSubstr("is not on the device of split 1"));
}

TEST_F(VerifyPlan, Replicas) {
  const Plan good = plan_;
  plan_.splits[1].inputs.clear();
  EXPECT_THAT(Error(), HasSubstr("'a'): is not copied exactly once"));
  plan_ = good;
  plan_.splits[2].inputs.push_back(plan_.splits[1].inputs[0]);
  EXPECT_THAT(Error(), HasSubstr("is not an input of split 2"));
  plan_ = good;
  plan_.replicas.pop_back();
  plan_.splits.back().inputs.pop_back();
  EXPECT_THAT(Error(), HasSubstr("(mul_mat 'd'): its source"));
  plan_ = good;
  plan_.replicas.push_back(plan_.replicas[1]);
  plan_.splits[1].inputs.push_back(static_cast<int32_t>(plan_.replicas.size()) - 1);
  EXPECT_THAT(Error(), HasSubstr("'a'): is copied twice into one memory"));
  plan_ = good;
  plan_.replicas[2].kind = ReplicaKind::kWeight;  // as if it were staged, and twice the limit
  plan_.replicas[2].bytes = 512;
  plan_.replicas[2].source = NodeId{1};
  EXPECT_THAT(Error(), HasSubstr("split 2 stages 512 bytes of weights"));
}

}  // namespace
}  // namespace weft
