// The CPU device against the oracle, on every instruction set that runs here.
#include "tests/conformance/op_conformance.h"

#include <cctype>
#include <memory>
#include <set>

#include "common/cpu/cpu_device.h"
#include "tests/conformance/op_cases.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

class CpuConformanceTest : public testing::TestWithParam<InstructionSet> {
 protected:
  static void SetUpTestSuite() {
    cases_ = std::make_unique<std::vector<OpCase>>(AllOpCases(TestSeed(1)));
  }
  static void TearDownTestSuite() { cases_ = nullptr; }

  // Null where the instruction set cannot run here.
  std::unique_ptr<CpuDevice> Open(int threads) {
    CpuDeviceOptions options;
    options.threads = threads;
    options.instruction_set = GetParam();
    absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(options);
    if (!device.ok()) {
      EXPECT_THAT(device, StatusIs(absl::StatusCode::kFailedPrecondition, testing::_));
      return nullptr;
    }
    return *std::move(device);
  }

  static std::unique_ptr<std::vector<OpCase>> cases_;
};
std::unique_ptr<std::vector<OpCase>> CpuConformanceTest::cases_;

TEST_P(CpuConformanceTest, EveryOp_OverTheCaseTable_IsNearTheOracle) {
  const std::unique_ptr<CpuDevice> device = Open(2);
  if (device == nullptr) GTEST_SKIP() << "not on this processor";
  EXPECT_EQ(CheckCases(*device, *cases_), 0);
}

TEST_P(CpuConformanceTest, EveryOp_OnAnyNumberOfThreads_HasTheSameBits) {
  const std::unique_ptr<CpuDevice> one = Open(1);
  if (one == nullptr) GTEST_SKIP() << "not on this processor";
  std::vector<std::unique_ptr<CpuDevice>> others;
  for (const int threads : {2, 3, 7}) others.push_back(Open(threads));
  for (const OpCase& op_case : *cases_) {
    SCOPED_TRACE(op_case.name);
    ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> want, RunCase(*one, op_case));
    for (const std::unique_ptr<CpuDevice>& other : others) {
      ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> got, RunCase(*other, op_case));
      EXPECT_TRUE(got == want) << other->threads() << " threads";
    }
  }
}

TEST(OpCasesTest, CaseTable_EveryOpThatExecutes_HasACase) {
  std::set<Op> seen;
  for (const OpCase& op_case : AllOpCases(1)) seen.insert(op_case.op);
  for (const OpInfo& info : AllOps()) {
    if (!RunsOnDevice(info.op)) continue;
    EXPECT_TRUE(seen.count(info.op) == 1) << std::string(info.name);
  }
}

std::string IsaName(const testing::TestParamInfo<InstructionSet>& info) {
  std::string name(InstructionSetName(info.param));
  name[0] = static_cast<char>(std::toupper(name[0]));
  return name;
}

INSTANTIATE_TEST_SUITE_P(, CpuConformanceTest,
                         testing::Values(InstructionSet::kScalar, InstructionSet::kAvx2,
                                         InstructionSet::kAvx512, InstructionSet::kNeon),
                         IsaName);

}  // namespace
}  // namespace weft
