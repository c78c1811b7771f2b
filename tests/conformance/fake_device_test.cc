// The case table on a device whose memory the host cannot use: what other devices' tests do.
#include "tests/support/fake_device.h"
#include "tests/conformance/op_cases.h"
#include "tests/conformance/op_conformance.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

TEST(FakeDeviceConformanceTest, EveryOp_OverTheCaseTable_IsNearTheOracle) {
  FakeDeviceOptions options;
  options.delays = false;
  FakeDevice device(options);
  EXPECT_EQ(CheckCases(device, AllOpCases(TestSeed(2))), 0);
}

}  // namespace
}  // namespace weft
