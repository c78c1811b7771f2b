// Runs of used experts.
#include "common/program/expert_runs.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<uint8_t> Bytes(const std::vector<int32_t>& ids) {
  std::vector<uint8_t> bytes(ids.size() * sizeof(int32_t));
  if (!ids.empty()) std::memcpy(bytes.data(), ids.data(), bytes.size());
  return bytes;
}

TEST(UsedExperts, StridedIds_OnceEachInOrder_PaddingSkipped) {
  // Two ids of each row of three.
  const TensorLayout layout = {DType::kI32, {2, 3, 1, 1}, {4, 12, 36, 36}};
  EXPECT_EQ(UsedExperts(layout, Bytes({5, 1, 99, 1, -1, 99, -7, 0})),
            (std::vector<int32_t>{0, 1, 5}));
  const TensorLayout column = {DType::kI32, {1, 2, 2, 1}, {4, 8, 4, 4}};
  EXPECT_EQ(UsedExperts(column, Bytes({3, 2, 3, 7})), (std::vector<int32_t>{2, 3, 7}));
  EXPECT_THAT(UsedExperts({DType::kI32, {2, 1, 1, 1}, {4, 8, 8, 8}}, Bytes({-1, -1})), IsEmpty());
  EXPECT_THAT(UsedExperts({DType::kI32, {2, 0, 1, 1}, {4, 8, 0, 0}}, {}), IsEmpty());
}

struct RunCase {
  std::vector<int32_t> used;
  int64_t stride;
  std::vector<ExpertRun> runs;
};

TEST(ExpertRuns, MaximalRuns_PaddedUnlessTheyEndTheWeight) {
  const RunCase cases[] = {
      {{}, 100, {}},
      {{0}, 100, {{0, 200}}},
      {{7}, 100, {{700, 100}}},
      {{0, 1, 2, 3, 4, 5, 6, 7}, 100, {{0, 800}}},
      {{1, 2, 5, 7}, 100, {{100, 300}, {500, 200}, {700, 100}}},
      {{3, 4}, 4096, {{3 * 4096, 2 * 4096 + 512}}},
      {{0, 6, 7}, 512, {{0, 1024}, {6 * 512, 1024}}},
  };
  for (const RunCase& c : cases) {
    ASSERT_OK_AND_ASSIGN(const std::vector<ExpertRun> runs, ExpertRuns(c.used, 8, c.stride));
    EXPECT_EQ(runs, c.runs) << testing::PrintToString(c.used);
  }
}

TEST(ExpertRuns, IdBeyondTheExperts_IsNamed) {
  const std::vector<int32_t> used = {1, 8};
  EXPECT_THAT(ExpertRuns(used, 8, 64), StatusIs(absl::StatusCode::kInvalidArgument,
                                                HasSubstr("expert id 8, but there are 8 experts")));
  EXPECT_FALSE(ExpertRuns({0}, 0, 64).ok());
}

}  // namespace
}  // namespace weft
