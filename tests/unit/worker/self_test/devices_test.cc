// Every device of ours passes its self-test.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "common/blas/blas_device.h"
#include "common/blas/blas_library.h"
#include "common/cpu/cpu_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "worker/self_test/test_cases.h"
#include "worker/self_test/test_device.h"

namespace weft {
namespace {

using ::testing::IsEmpty;

void ExpectPasses(Device& device) {
  const SystemClock clock;
  const Clock::TimePoint start = clock.Now();
  ASSERT_OK_AND_ASSIGN(const Quarantine quarantine, TestDevice(device));
  std::printf("%s: %.0f ms\n", device.name().c_str(), SecondsSince(clock, start) * 1e3);
  EXPECT_THAT(quarantine.Texts(), IsEmpty());
}

// The ops of the cases that the device says it supports.
std::set<Op> TestedOps(const Device& device) {
  std::set<Op> ops;
  for (const self_test::TestCase& test_case : self_test::AllCases()) {
    if (!device.Supports(test_case.graph, test_case.result).ok()) continue;
    ops.insert(test_case.graph.node(test_case.result).op);
  }
  return ops;
}

size_t OpsOfDevices() {
  const absl::Span<const OpInfo> all = AllOps();
  return static_cast<size_t>(std::count_if(
      all.begin(), all.end(), [](const OpInfo& info) { return RunsOnDevice(info.op); }));
}

class CpuSelfTest : public testing::TestWithParam<InstructionSet> {};

TEST_P(CpuSelfTest, CpuDevice_OnOneThread_PassesInEveryOp) {
  CpuDeviceOptions options;
  options.name = std::string(InstructionSetName(GetParam()));
  options.instruction_set = GetParam();
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(options);
  if (absl::IsFailedPrecondition(device.status())) GTEST_SKIP() << "not on this processor";
  ASSERT_OK(device);
  ExpectPasses(**device);
  EXPECT_EQ(TestedOps(**device).size(), OpsOfDevices());
}

std::string IsaName(const testing::TestParamInfo<InstructionSet>& info) {
  std::string name(InstructionSetName(info.param));
  name[0] = static_cast<char>(std::toupper(name[0]));
  return name;
}

INSTANTIATE_TEST_SUITE_P(, CpuSelfTest,
                         testing::Values(InstructionSet::kScalar, InstructionSet::kAvx2,
                                         InstructionSet::kAvx512, InstructionSet::kNeon),
                         IsaName);

TEST(BlasSelfTest, BlasDevice_WhereInstalled_PassesAndIsTested) {
  absl::StatusOr<std::shared_ptr<BlasLibrary>> library = BlasLibrary::Load();
  if (!library.ok()) GTEST_SKIP() << library.status();
  CpuDeviceOptions options;
  options.instruction_set = BestInstructionSet();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<CpuDevice> cpu, CpuDevice::Create(options));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<BlasDevice> device,
                       BlasDevice::Create(*cpu, *std::move(library), {}));
  int supported = 0;
  for (const self_test::TestCase& test_case : self_test::AllCases()) {
    if (device->Supports(test_case.graph, test_case.result).ok()) ++supported;
  }
  EXPECT_EQ(supported, 3);  // F32, F16 and BF16 weights
  ExpectPasses(*device);
}

}  // namespace
}  // namespace weft
