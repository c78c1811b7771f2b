// Each rule of the scheduler does something: without it a named golden plan, or that of a small
// graph where no model needs the rule, reads otherwise.
#include <set>

#include "absl/strings/match.h"
#include "coordinator/scheduler/plan_text.h"
#include "gtest/gtest.h"
#include "tests/golden/plans/plan_cases.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

constexpr Extents kVector = {8, 1, 1, 1};
constexpr Extents kMatrix = {8, 8, 1, 1};

// --- Small graphs, each over a GPU, another machine's GPU, an accelerator for products in the
// CPU's memory, and the CPU ---
constexpr int32_t kGpu = 0, kFarGpu = 1, kCpu = 3;

std::vector<RigDevice> SmallMachine() {
  RigDevice blas = Accelerator("blas", "cpu");
  blas.options.supports = [](const Graph& graph, NodeId id) -> Support {
    if (graph.node(id).op == Op::kMulMat) return absl::OkStatus();
    return absl::UnimplementedError("products only");
  };
  RigDevice gpu = Gpu("gpu");
  gpu.options.supports = RefuseOps({Op::kArgMax});
  return {gpu, Gpu("w0.gpu", "w0"), blas, Cpu("cpu")};
}

NodeId OnGpu(PlanRig& rig) {
  return rig.Named(rig.g.MulMat(rig.Weight("w", kMatrix, kGpu), rig.Input("x", kMatrix)), "on_gpu");
}

void FactorsOnTheCpu(PlanRig& rig) {
  const NodeId x = rig.g.Reshape(OnGpu(rig), {8, 1, 8, 1});
  RopeAttributes rope;
  rope.dimensions = 8;
  rig.g.MarkOutput(rig.Named(rig.g.Rope(x, rig.Input("positions", kVector, DType::kI32),
                                        rig.Weight("factors", {4, 1, 1, 1}, kCpu), rope),
                             "turned"));
}

// On the machine of its factors, though its other source is here.
void FactorsElsewhere(PlanRig& rig) {
  const NodeId x = rig.g.Reshape(OnGpu(rig), {8, 1, 8, 1});
  RopeAttributes rope;
  rope.dimensions = 8;
  rig.g.MarkOutput(rig.Named(rig.g.Rope(x, rig.Input("positions", kVector, DType::kI32),
                                        rig.Weight("factors", {4, 1, 1, 1}, kFarGpu), rope),
                             "turned"));
}

void SinksOnTheCpu(PlanRig& rig) {
  const NodeId q = rig.g.Reshape(OnGpu(rig), {8, 1, 8, 1});
  const NodeId positions = rig.Input("positions", kVector, DType::kI32);
  const NodeId keys = rig.g.KvStore(rig.Cache("keys", {8, kPageTokens, 1, 2}, kGpu), q, positions);
  PagedAttentionAttributes attributes;
  attributes.value_dimensions = 8;
  rig.g.MarkOutput(
      rig.Named(rig.g.PagedAttention(q, keys, kNoNode, rig.Table("table", {1, 1, 1, 1}),
                                     rig.Input("sequence", kVector, DType::kI32), positions,
                                     rig.Weight("sinks", {1, 1, 1, 1}, kCpu), kNoNode, attributes),
                "attended"));
}

// What the GPU refuses goes to its host, not to the far GPU that comes before.
void RefusedByTheGpu(PlanRig& rig) {
  rig.g.MarkOutput(rig.Named(rig.g.Make(Op::kArgMax, {}, {OnGpu(rig)}), "best"));
}

// Stays with the GPU that made its source.
void BetweenGpus(PlanRig& rig) {
  const NodeId between = rig.Named(rig.g.Scale(OnGpu(rig), 2), "between");
  rig.g.MarkOutput(rig.g.MulMat(rig.Weight("far", kMatrix, kFarGpu), between));
}

void ProductOfActivations(PlanRig& rig) {
  const NodeId a = rig.g.Add(rig.Input("x", kMatrix), rig.Weight("b", kVector, kCpu));
  rig.g.MarkOutput(rig.Named(rig.g.MulMat(a, a), "product"));
}

void FreeLeaf(PlanRig& rig) { rig.g.MarkOutput(rig.g.Add(OnGpu(rig), rig.Free("free", kVector))); }

// a -> far GPU, back, and a on the far GPU once more.
void ReadTwiceElsewhere(PlanRig& rig) {
  const NodeId a = OnGpu(rig);
  const NodeId b = rig.g.MulMat(rig.Weight("b", kMatrix, kFarGpu), a);
  const NodeId c = rig.g.MulMat(rig.Weight("c", kMatrix, kGpu), b);
  rig.g.MarkOutput(rig.g.Add(rig.g.MulMat(rig.Weight("d", kMatrix, kFarGpu), c), a));
}

void PlainNorm(PlanRig& rig) {
  rig.g.MarkOutput(
      rig.g.Mul(rig.g.RmsNorm(OnGpu(rig), kNoNode, 1e-5f), rig.Weight("norm", kVector, kGpu)));
}

void Steps(PlanRig& rig) { rig.g.MarkOutput(rig.g.Unary(OnGpu(rig), UnaryKind::kSilu)); }

// --- The table ---
struct RuleRow {
  Rule rule;
  std::string golden;                   // the case, or empty:
  std::function<void(PlanRig&)> build;  // the small graph
  std::string with;                     // a line of the plan that is not there without the rule
  std::string without;                  // and the other way round
};

std::vector<RuleRow> Rows() {
  return {
      {Rule::kViewSource, "llama-gqa.gpu", nullptr, "  kv_store '%18' 1.vsrc\n",
       "  kv_store '%18' 2.sup\n"},
      {Rule::kInput, "llama-gqa.gpu", nullptr, "  < input 'positions' 256 bytes from local.cpu0\n",
       ""},
      {Rule::kWeight, "llama-gqa.gpu", nullptr, "  mul_mat '%7' 1.wgt0\n",
       "  mul_mat '%7' 2.sup\n"},
      {Rule::kExemptRope, "", FactorsOnTheCpu, "  rope 'turned' 2.sup\n",
       "  rope 'turned' 1.wgt2\n"},
      {Rule::kExemptAttention, "", SinksOnTheCpu, "  paged_attention 'attended' 2.sup\n",
       "  paged_attention 'attended' 1.wgt5\n"},
      {Rule::kWeightHost, "", FactorsElsewhere, "  < tensor 'on_gpu' 256 bytes from gpu\n",
       "  < weight 'factors' 16 bytes from w0.gpu\n"},
      {Rule::kOffload, "llama-gqa.offload", nullptr, "  mul_mat '%7' 1.off\n", ""},
      {Rule::kBatch, "qwen2.unified", nullptr, "  mul_mat '%7' 1.bat\n", ""},
      {Rule::kSweepForward, "", BetweenGpus, "  < tensor 'between' 256 bytes from gpu\n",
       "  < tensor 'on_gpu' 256 bytes from gpu\n"},
      {Rule::kSweepBackward, "llama-gqa.half", nullptr,
       "  < tensor 'attention.0' 192 bytes from local.cpu0\n", ""},
      {Rule::kSweepAllForward, "llama-f16.accel", nullptr, "", "  rope '%21' 3.best\n"},
      {Rule::kSweepAllBackward, "llama-f16.accel", nullptr, "", "  add 'attention.0' 3.best\n"},
      {Rule::kHostStops, "llama-gqa.half", nullptr,
       "  < tensor 'attention.0' 192 bytes from local.cpu0\n", ""},
      // The sum that ends the last layer of a worker would go to the next one, which needs three.
      {Rule::kLayerHost, "qwen3moe.worker_experts", nullptr,
       "  < tensor 'layer.1' 192 bytes from w0.cpu0\n",
       "  < tensor '%113' 384 bytes from w0.cpu0\n"},
      {Rule::kGuess, "llama-f16.accel", nullptr, "  glu '%35' 3.best\n", "  glu '%35' 4.any\n"},
      {Rule::kTieHost, "", RefusedByTheGpu, "split 1 on cpu\n", "split 1 on w0.gpu\n"},
      {Rule::kUpgrade, "", ProductOfActivations, "  mul_mat 'product' 3.upg\n",
       "  mul_mat 'product' 2.sup\n"},
      {Rule::kInherit, "", FreeLeaf, "", "  < weight 'free' 32 bytes from cpu\n"},
      {Rule::kStagedLimit, "llama-gqa.offload", nullptr, "", ""},
      {Rule::kDirectRead, "qwen2.unified", nullptr, "", ""},
      {Rule::kReuseReplica, "", ReadTwiceElsewhere, "copies 3 of 768 bytes",
       "copies 4 of 1024 bytes"},
      {Rule::kExpertCopies, "qwen3moe.experts", nullptr,
       "  < experts 'blk.0.ffn_up_exps.weight' 38400 bytes from local.cpu0\n",
       "  < weight 'blk.0.ffn_up_exps.weight' 38400 bytes from local.cpu0\n"},
      {Rule::kFuse, "", PlainNorm, ", fused 2\n", ""},
      {Rule::kInPlace, "", Steps, "memory of gpu: 256 bytes", "memory of gpu: 512 bytes"},
  };
}

absl::StatusOr<std::string> TextOf(const RuleRow& row, bool disabled) {
  if (!row.golden.empty()) {
    const std::vector<PlanCase> cases = PlanCases();
    PlanCase plan_case = FindPlanCase(cases, row.golden);
    if (disabled) plan_case.options.disabled.Add(row.rule);
    return PlanCaseText(plan_case, nullptr);
  }
  PlanRig rig(SmallMachine());
  row.build(rig);
  if (disabled) rig.input.options.disabled.Add(row.rule);
  const absl::Status status = rig.Plan();
  if (!status.ok()) return status;
  return PlanText(rig.context(), rig.result());
}

TEST(PlanRules, EachChangesAPlan) {
  for (const RuleRow& row : Rows()) {
    SCOPED_TRACE(std::string(RuleName(row.rule)));
    ASSERT_OK_AND_ASSIGN(const std::string with, TextOf(row, false));
    ASSERT_OK_AND_ASSIGN(const std::string without, TextOf(row, true));
    EXPECT_NE(with, without);
    EXPECT_TRUE(absl::StrContains(with, row.with)) << with;
    EXPECT_TRUE(absl::StrContains(without, row.without)) << without;
    EXPECT_TRUE(row.with.empty() || !absl::StrContains(without, row.with)) << without;
    EXPECT_TRUE(row.without.empty() || !absl::StrContains(with, row.without)) << with;
  }
}

TEST(PlanRules, EachHasARow) {
  std::multiset<Rule> seen;
  for (const RuleRow& row : Rows()) seen.insert(row.rule);
  for (const Rule rule : AllRules()) EXPECT_EQ(seen.count(rule), 1u) << RuleName(rule);
}

}  // namespace
}  // namespace weft
