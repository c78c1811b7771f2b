// What a host counts, and memory that a device cannot use.
#include "common/graph/graph_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/program/program_fixture.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// An input of so many floats, doubled on that device, the last of the program.
Program Double(int64_t floats, int32_t device) {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {floats, 1, 1, 1}, "x");
  builder.MarkOutput(builder.Name(builder.Scale(x, 2), "doubled"));
  return CompileForTest(*std::move(builder).Finish(), {device, device}, device + 1);
}

class HostCountersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fakes_ = MakeFakeDevices(2, 1);
    LocalProgramHostOptions options;
    options.devices = Borrow(fakes_);
    ASSERT_OK_AND_ASSIGN(host_, LocalProgramHost::Create(std::move(options)));
  }

  InstanceId Instantiate(const Program& program) {
    const absl::StatusOr<ProgramId> id = host_->Install(program);
    EXPECT_OK(id);
    const absl::StatusOr<InstanceId> instance = host_->Instantiate(*id, {});
    EXPECT_OK(instance);
    return *instance;
  }

  std::vector<std::unique_ptr<FakeDevice>> fakes_;
  std::unique_ptr<LocalProgramHost> host_;
};

TEST_F(HostCountersTest, Growth_IsCountedWhereInstancesKnewTheMemory) {
  Instantiate(Double(64, 0));
  Instantiate(Double(64, 1));
  Instantiate(Double(16, 1));
  EXPECT_EQ(host_->counters().memory_replaced, 0);
  EXPECT_EQ(host_->counters().prepared_again, 0);
  EXPECT_EQ(host_->counters().last_reason, "");
  // Both instances on device 1, none on device 0.
  const InstanceId large = Instantiate(Double(128, 1));
  EXPECT_EQ(host_->counters().memory_replaced, 1);
  EXPECT_EQ(host_->counters().prepared_again, 2);
  EXPECT_EQ(host_->counters().last_reason,
            "input memory of fake1 grew from 256 to 512 bytes; arena 0 of fake1 grew from 256 to "
            "512 bytes");
  Instantiate(Double(128, 1));
  EXPECT_EQ(host_->counters().memory_replaced, 1);
  ASSERT_OK(host_->Release(large));
}

TEST_F(HostCountersTest, Growth_IsNotCountedWithoutInstances) {
  ASSERT_OK(host_->Release(Instantiate(Double(64, 0))));
  Instantiate(Double(128, 0));
  EXPECT_EQ(host_->counters().memory_replaced, 0);
}

TEST_F(HostCountersTest, Steps_AreCounted) {
  const InstanceId instance = Instantiate(Double(4, 0));
  const std::vector<uint8_t> x(16);
  for (int64_t step = 1; step <= 3; ++step) {
    StepInput input;
    input.step = step;
    input.inputs = {x};
    ASSERT_OK(host_->Launch(instance, input));
    ASSERT_OK(host_->Await(step, Soon()));
  }
  EXPECT_EQ(host_->counters().launched, 3);
  EXPECT_EQ(host_->counters().overlapped, 0);
}

TEST_F(HostCountersTest, MemoryThatADeviceCannotUse_FailsInstantiateWithTheReason) {
  Program program = Double(4, 0);
  program.devices.push_back({"accelerator", {0}});
  ASSERT_OK(VerifyProgram(program));
  ASSERT_OK_AND_ASSIGN(const ProgramId id, host_->Install(program));
  EXPECT_THAT(host_->Instantiate(id, {}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("device 1 (accelerator) computes in the memory of device 0 "
                                       "(device0): fake1 cannot read fake0 memory"))));
}

}  // namespace
}  // namespace weft
