// Every golden model over every number of ranks, shared evenly and not, where each rank is a device
// with a memory of its own or a process (nightly): the undivided run's answer, by decision 20. One
// rank is refused.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/engine/rank_cell_check.h"
#include "tests/unit/coordinator/engine/ranked_model.h"

namespace weft {
namespace {

using testing::HasSubstr;

class RankMatrixTest : public testing::TestWithParam<std::tuple<const char*, RankDevices>> {};

TEST_P(RankMatrixTest, EveryCount_AnswersAsOne) {
  const auto& [name, devices] = GetParam();
  // The first of many ranks has most, some have nothing.
  const std::vector<double> uneven = {3, 1, 1, 2, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1};
  RankedModel one;
  ASSERT_OK(one.Open(name));
  EXPECT_THAT(one.Start(RankedOptions(16), {.ranks = 1, .devices = devices}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("one device holds layers")));
  for (const int ranks : {2, 3, 4, 5, 7, 8, 16}) {
    CheckCell(name, {.ranks = ranks, .devices = devices});
    CheckCell(name, {.ranks = ranks,
                     .shares = std::vector<double>(uneven.begin(), uneven.begin() + ranks),
                     .devices = devices});
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Golden, RankMatrixTest,
    testing::Combine(testing::Values("llama-gqa", "llama-moe", "llama-plain", "llama3-rope",
                                     "qwen2", "qwen3", "qwen3moe", "llama-f16"),
                     testing::Values(RankDevices::kFakeDevices, RankDevices::kProcesses)),
    [](const auto& parameter) {
      std::string name = std::get<0>(parameter.param);
      std::replace(name.begin(), name.end(), '-', '_');
      return name + (std::get<1>(parameter.param) == RankDevices::kFakeDevices ? "_fake_devices"
                                                                               : "_processes");
    });

}  // namespace
}  // namespace weft
