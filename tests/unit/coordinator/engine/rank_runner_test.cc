// Models cut over ranks, each a process with a device of its own: the undivided run's answer, by
// decision 20, for every model and what spans the numbers of ranks and ways to share
// (rank_matrix_test.cc has them all).
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/gguf/gguf_file.h"
#include "common/tensor/quant/reference_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/engine/rank_cell_check.h"
#include "tests/unit/coordinator/engine/ranked_model.h"

namespace weft {
namespace {

using testing::HasSubstr;

class RankRunnerTest : public testing::TestWithParam<const char*> {};

TEST_P(RankRunnerTest, RanksInProcesses_AnswerAsOne) {
  for (const int ranks : {2, 3, 5}) CheckCell(GetParam(), {.ranks = ranks});
  CheckCell(GetParam(), {.ranks = 3, .shares = {3, 1, 1}});
  CheckCell(GetParam(), {.ranks = 4, .tensor_ranks = 2});
  CheckCell(GetParam(), {.ranks = 4, .processes_per_machine = 2});
}

TEST_P(RankRunnerTest, RanksWithMemoriesApart_AnswerAsOne) {
  CheckCell(GetParam(), {.ranks = 2, .devices = RankDevices::kFakeDevices});
  CheckCell(GetParam(), {.ranks = 3, .shares = {1, 0, 2}, .devices = RankDevices::kFakeDevices});
}

TEST_P(RankRunnerTest, MoreRanksThanHeads_AnswerAsOne) { CheckCell(GetParam(), {.ranks = 16}); }

// Large steps in halves, whose sums travel while the ranks compute; the last one is half padding.
TEST_P(RankRunnerTest, Overlap_AnswersAsOne) {
  RankedModel whole;
  ASSERT_OK(whole.Open(GetParam()));
  ASSERT_OK(whole.StartWhole(RankedOptions(64)));
  const std::vector<int32_t>& golden = whole.golden.cases.back().tokens;
  std::vector<int32_t> tokens;
  while (tokens.size() < 100) tokens.push_back(golden[tokens.size() % golden.size()]);
  ASSERT_OK_AND_ASSIGN(const std::vector<float> want, whole.Logits(tokens));
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> expected, whole.Continue(tokens, 4));
  for (const RankCell& cell :
       {RankCell{.ranks = 2}, RankCell{.ranks = 3, .shares = {3, 1, 1}},
        RankCell{.ranks = 4, .tensor_ranks = 2},
        RankCell{.ranks = 2, .devices = RankDevices::kFakeDevices},
        RankCell{.ranks = 4, .devices = RankDevices::kFakeDevices, .tensor_ranks = 2}}) {
    SCOPED_TRACE(CellText(cell));
    RunnerOptions options = RankedOptions(64);
    options.plan.overlap = OverlapPolicy::kOn;
    RankedModel cut;
    ASSERT_OK(cut.Open(GetParam()));
    ASSERT_OK(cut.Start(options, cell));
    ASSERT_OK_AND_ASSIGN(const std::vector<float> got, cut.Logits(tokens));
    EXPECT_LE(NormalizedError(got, want), RankTolerance(whole.golden));
    ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> next, cut.Continue(tokens, 4));
    EXPECT_EQ(next, expected);
    EXPECT_EQ(cut.runner->counters().replans, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, RankRunnerTest,
                         testing::Values("llama-gqa", "llama-moe", "llama-plain", "llama3-rope",
                                         "qwen2", "qwen3", "qwen3moe", "llama-f16"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Narrower sums move the answer a little: less than their type allows, but not by nothing.
TEST(RankRunner, WireTypes_AnswerNearly) {
  RankedModel whole;
  ASSERT_OK(whole.Open("llama-gqa"));
  ASSERT_OK(whole.StartWhole(RankedOptions(16)));
  const std::vector<int32_t>& tokens = whole.golden.cases.back().tokens;
  ASSERT_OK_AND_ASSIGN(const std::vector<float> want, whole.Logits(tokens));
  const struct {
    DType wire;
    double least, most;
  } cases[] = {{DType::kBF16, 1e-8, 1e-4}, {DType::kQ8_0, 1e-7, 1e-3}};
  for (const auto& c : cases) {
    for (const int ranks : {2, 3, 5}) {
      for (const AllReducePolicy policy : {AllReducePolicy::kDoubling, AllReducePolicy::kByParts}) {
        SCOPED_TRACE(absl::StrCat(ranks, " ranks, ", AbslView(DTypeName(c.wire))));
        RunnerOptions options = RankedOptions(16);
        options.plan.wire = c.wire;
        options.plan.all_reduce = policy;
        RankedModel cut;
        ASSERT_OK(cut.Open("llama-gqa"));
        ASSERT_OK(cut.Start(options, {.ranks = ranks}));
        ASSERT_OK_AND_ASSIGN(const std::vector<float> got, cut.Logits(tokens));
        EXPECT_GE(NormalizedError(got, want), c.least);
        EXPECT_LE(NormalizedError(got, want), c.most);
      }
    }
  }
}

// What explain says that ranks send each other, they send: bytes counted by the ports.
TEST(RankRunner, ExplainedTraffic_IsWhatPortsCount) {
  for (const auto& [ranks, per_machine, wire, policy, overlap] :
       {std::tuple(2, 1, DType::kF32, AllReducePolicy::kAuto, OverlapPolicy::kOff),
        std::tuple(2, 1, DType::kF32, AllReducePolicy::kAuto, OverlapPolicy::kOn),
        std::tuple(3, 1, DType::kBF16, AllReducePolicy::kByParts, OverlapPolicy::kOff),
        std::tuple(5, 1, DType::kQ8_0, AllReducePolicy::kDoubling, OverlapPolicy::kOff),
        std::tuple(5, 3, DType::kF32, AllReducePolicy::kByParts, OverlapPolicy::kOff)}) {
    SCOPED_TRACE(absl::StrCat(ranks, " ranks, ", per_machine, " a machine"));
    RunnerOptions options = RankedOptions(overlap == OverlapPolicy::kOn ? 64 : 16);
    options.plan.overlap = overlap;
    options.reserve_outputs = 1;
    options.plan.wire = wire;
    options.plan.all_reduce = policy;
    RankedModel cut;
    ASSERT_OK(cut.Open("llama-gqa"));
    ASSERT_OK(cut.Start(options, {.ranks = ranks, .processes_per_machine = per_machine}));
    ASSERT_OK_AND_ASSIGN(const ExplainReport report, cut.Explain(options));
    int64_t position = 0;
    for (const ExplainPhase& phase : report.phases) {
      const std::vector<EdgeTraffic> before = cut.Sent(ranks);
      std::vector<BatchToken> batch;
      for (int64_t t = 0; t < phase.tokens; ++t, ++position) {
        batch.push_back({.token = static_cast<int32_t>(3 + t), .position = position});
      }
      batch.back().output = true;
      ASSERT_OK(cut.runner->Step(batch));
      const std::vector<EdgeTraffic> after = cut.Sent(ranks);
      ASSERT_EQ(static_cast<int>(phase.rank_traffic.size()), ranks);
      for (int r = 0; r < ranks; ++r) {
        EXPECT_GT(phase.rank_traffic[r].bytes, 0);
        EXPECT_EQ(after[r].bytes - before[r].bytes, phase.rank_traffic[r].bytes) << phase.name;
        EXPECT_EQ(after[r].messages - before[r].messages, phase.rank_traffic[r].messages);
      }
    }
  }
}

// What logits are made of: the output matrix by them gives the logits.
TEST(RankRunner, HiddenStates_TimesTheOutput_AreLogits) {
  for (const char* name : {"llama-f16", "qwen2"}) {
    SCOPED_TRACE(name);
    RankedModel one;
    ASSERT_OK(one.Open(name));
    ASSERT_OK(one.StartWhole(RankedOptions(16)));
    const std::vector<int32_t>& tokens = one.golden.cases.back().tokens;
    ASSERT_OK_AND_ASSIGN(const std::vector<float> logits, one.Logits(tokens));
    ASSERT_OK_AND_ASSIGN(const std::vector<float> states, one.Hidden(tokens, 16));
    const GgufFile& file = one.model().file();
    const GgufTensor* output = file.FindTensor("output.weight");
    if (output == nullptr) output = file.FindTensor("token_embd.weight");
    const auto width = static_cast<size_t>(output->layout.ne[0]);
    const auto rows = static_cast<size_t>(output->layout.ne[1]);
    const absl::Span<const uint8_t> bytes = file.TensorBytes(*output);
    const size_t row_bytes = bytes.size() / rows;
    const absl::Span<const float> last = absl::MakeConstSpan(states).last(width);
    const absl::Span<const float> want = absl::MakeConstSpan(logits).last(rows);
    std::vector<float> got, weights(width);
    for (size_t row = 0; row < rows; ++row) {
      ASSERT_OK(Dequantize(output->layout.dtype, bytes.subspan(row * row_bytes, row_bytes),
                           absl::MakeSpan(weights)));
      double sum = 0;
      for (size_t i = 0; i < width; ++i) sum += double{weights[i]} * last[i];
      got.push_back(static_cast<float>(sum));
    }
    EXPECT_LE(NormalizedError(got, want), 1e-4);
  }
}

TEST(RankRunner, BadGroups_AreRefusedWithTheFlag) {
  RankedModel one;
  ASSERT_OK(one.Open("llama-gqa"));
  EXPECT_THAT(
      one.Start(RankedOptions(16), {.ranks = 3, .tensor_ranks = 2}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--layout: groups of 2 of 3")));
  RankedModel two;
  ASSERT_OK(two.Open("llama-gqa"));
  EXPECT_THAT(
      two.Start(RankedOptions(16), {.ranks = 2, .shares = {0, 0}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the group of w0.cpu0 has no share")));
}

}  // namespace
}  // namespace weft
