#include "tests/unit/coordinator/engine/rank_cell_check.h"

#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {

double RankTolerance(const GoldenModel& golden) { return std::max(1e-6, golden.tol_nmse / 10); }

void CheckCell(const std::string& name, const RankCell& cell) {
  SCOPED_TRACE(name + ": " + CellText(cell));
  RankedModel whole;
  ASSERT_OK(whole.Open(name));
  ASSERT_OK(whole.StartWhole(RankedOptions(16)));
  RankedModel cut;
  ASSERT_OK(cut.Open(name));
  ASSERT_OK(cut.Start(RankedOptions(16), cell));
  const GoldenCase& golden = whole.golden.cases.back();
  ASSERT_OK_AND_ASSIGN(const std::vector<float> want, whole.Logits(golden.tokens));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> got, cut.Logits(golden.tokens));
  EXPECT_LE(NormalizedError(got, want), RankTolerance(whole.golden));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> want_states, whole.Hidden(golden.tokens, 16));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> states, cut.Hidden(golden.tokens, 7));
  EXPECT_EQ(states.size(), golden.tokens.size() * whole.model().hyperparameters().n_embd);
  EXPECT_LE(NormalizedError(states, want_states), RankTolerance(whole.golden));
  const absl::Span<const int32_t> prompt =
      absl::MakeConstSpan(golden.tokens).first(std::min<size_t>(golden.tokens.size(), 20));
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> expected, whole.Continue(prompt, 8));
  ASSERT_OK_AND_ASSIGN(const std::vector<int32_t> tokens, cut.Continue(prompt, 8));
  EXPECT_EQ(tokens, expected);
  EXPECT_EQ(cut.runner->counters().replans, 0);
}

}  // namespace weft
