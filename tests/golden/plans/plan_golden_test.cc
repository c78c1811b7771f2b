// Plans of models as text, against files that people have read. UPDATE_GOLDEN=1 writes them anew.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "coordinator/scheduler/plan_text.h"
#include "coordinator/scheduler/program_compiler.h"
#include "gtest/gtest.h"
#include "tests/golden/plans/plan_cases.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

std::string Folder() {
  const char* source = std::getenv("WEFT_SOURCE_DIR");
  return std::string(source == nullptr ? "." : source) + "/tests/golden/plans";
}

std::string ReadGolden(const std::string& name) {
  std::ifstream file(Folder() + "/" + name + ".txt");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class PlanGoldenTest : public testing::TestWithParam<PlanCase> {};

void CheckPhase(const PlanPhase& phase, const PlanContext& context, const ExecutionPlan& plan) {
  SCOPED_TRACE(testing::Message() << phase.tokens << " tokens");
  const PlanTraffic traffic = MeasureTraffic(context, plan);
  EXPECT_TRUE(phase.splits < 0 || traffic.splits == phase.splits) << traffic.splits << " splits";
  EXPECT_EQ(traffic.processes, phase.processes);
  // A boundary between hosts is crossed by one tensor (decision 10).
  int64_t crossing = 0;
  for (const Replica& replica : plan.plan.replicas) {
    const int32_t from = plan.plan.assignments[Index(replica.source)].device;
    if (replica.kind == ReplicaKind::kInput || context.SameHost(from, replica.device)) continue;
    ++crossing;
  }
  EXPECT_EQ(crossing, phase.processes - 1);
  // Attention goes to the cache, never a cache to attention.
  for (const Replica& replica : plan.plan.replicas) {
    const LeafAttributes* leaf = context.graph().leaf(context.graph().Root(replica.source));
    EXPECT_TRUE(leaf == nullptr || leaf->kind != LeafKind::kCache) << Index(replica.source);
  }
  ASSERT_OK_AND_ASSIGN(const Program program, CompilePlan(context, plan));
  EXPECT_OK(VerifyProgram(program));
}

TEST_P(PlanGoldenTest, IsAsReviewed) {
  const PlanCase& plan_case = GetParam();
  ASSERT_OK_AND_ASSIGN(const std::string text, PlanCaseText(plan_case, CheckPhase));
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(Folder() + "/" + plan_case.name + ".txt") << text;
  }
  EXPECT_EQ(text, ReadGolden(plan_case.name)) << "if this is better: UPDATE_GOLDEN=1, and review";
}

std::string CaseName(const testing::TestParamInfo<PlanCase>& parameter) {
  std::string name = parameter.param.name;
  const auto is_mark = [](char c) { return c == '-' || c == '.'; };
  std::replace_if(name.begin(), name.end(), is_mark, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Plans, PlanGoldenTest, testing::ValuesIn(PlanCases()), CaseName);

// No file is left over from a case that is gone.
TEST(PlanGolden, EveryFileBelongsToACase) {
  const std::vector<PlanCase> cases = PlanCases();
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    if (entry.path().extension() != ".txt" || entry.path().filename() == "CMakeLists.txt") continue;
    const std::string name = entry.path().stem().string();
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [&](const PlanCase& plan_case) {
      return plan_case.name == name;
    })) << name;
  }
}

}  // namespace
}  // namespace weft
