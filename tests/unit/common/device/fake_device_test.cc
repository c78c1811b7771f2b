// The fake device is as bad as it promises.
#include "tests/support/fake_device.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "common/base/status_macros.h"
#include "common/device/host_buffer.h"
#include "common/device/null_device.h"
#include "common/graph/graph_builder.h"
#include "gtest/gtest.h"
#include "tests/support/fake_memory.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(FakeDevice, FreshMemory_HoldsNaNs) {
  FakeDevice device(FakeDeviceOptions{});
  ASSERT_OK_AND_ASSIGN(const auto buffer, device.buffer_type().Allocate(64, BufferUsage::kCompute));
  EXPECT_EQ(buffer->host_data(), nullptr);
  EXPECT_FALSE(buffer->type().is_host());
  float values[16] = {};
  ASSERT_OK(buffer->Get(0, values, 64));
  for (const float value : values) EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(device.used_bytes(), 64);
}

TEST(FakeDevice, WeightsCopy_FollowsWrites) {
  FakeDevice device(FakeDeviceOptions{});
  ASSERT_OK_AND_ASSIGN(const auto buffer, device.buffer_type().Allocate(4, BufferUsage::kWeights));
  auto& fake = static_cast<FakeBuffer&>(*buffer);
  for (const uint8_t value : {uint8_t{1}, uint8_t{2}}) {
    const std::vector<uint8_t> bytes(4, value);
    ASSERT_OK(buffer->Set(0, bytes.data(), 4));
    EXPECT_EQ(std::memcmp(fake.PlainWeights(), bytes.data(), 4), 0);
  }
  ASSERT_OK_AND_ASSIGN(const auto other, device.buffer_type().Allocate(4, BufferUsage::kAny));
  EXPECT_EQ(static_cast<FakeBuffer&>(*other).PlainWeights(), nullptr);
}

TEST(FakeDevice, Refusals_AreAnsweredWithAReason) {
  FakeDeviceOptions options;
  options.refused_ops = {Op::kAdd};
  options.refused_dtypes = {DType::kF16};
  options.offload_batch = 2;
  options.accepted_buffer_types = {"host"};
  FakeDevice device(std::move(options));
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 2, 1, 1}, "x");
  const NodeId half = builder.Leaf(LeafKind::kWeight, 0, DType::kF16, {4, 1, 1, 1}, "half");
  EXPECT_THAT(device.Supports(builder.graph(), builder.Add(x, x)),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("no add")));
  EXPECT_THAT(device.Supports(builder.graph(), builder.Copy(half, DType::kF32)),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("no tensors of F16")));
  const NodeId product = builder.MulMat(half, x);
  EXPECT_FALSE(device.Supports(builder.graph(), product).ok());
  EXPECT_TRUE(device.Wants(builder.graph(), product));
  EXPECT_OK(device.Supports(builder.graph(), builder.Scale(x, 2)));
}

TEST(FakeDevice, Backend_RunsItsQueueInOrder) {
  FakeDevice device(FakeDeviceOptions{});
  ASSERT_OK_AND_ASSIGN(const auto backend, device.OpenBackend({}));
  ASSERT_OK_AND_ASSIGN(const auto buffer, device.buffer_type().Allocate(8, BufferUsage::kAny));
  std::vector<uint64_t> values(200);
  std::vector<uint64_t> seen(200);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i;
    ASSERT_OK(backend->Upload(&values[i], *buffer, 0, 8));
    ASSERT_OK(backend->Download(*buffer, 0, &seen[i], 8));
  }
  ASSERT_OK(backend->Synchronize());
  EXPECT_EQ(seen, values);
  EXPECT_FALSE(backend->Upload(values.data(), *buffer, 4, 8).ok());
}

TEST(FakeDevice, Events_OrderTwoBackends) {
  FakeDevice device(FakeDeviceOptions{});
  ASSERT_OK_AND_ASSIGN(const auto first, device.OpenBackend({}));
  ASSERT_OK_AND_ASSIGN(const auto second, device.OpenBackend({}));
  ASSERT_OK_AND_ASSIGN(const auto there, first->NewEvent());
  ASSERT_OK_AND_ASSIGN(const auto back, second->NewEvent());
  EXPECT_OK(there->Synchronize());  // never recorded
  ASSERT_OK_AND_ASSIGN(const auto buffer, device.buffer_type().Allocate(8, BufferUsage::kAny));
  std::vector<uint64_t> values(100);
  std::vector<uint64_t> seen(100);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i;
    ASSERT_OK(first->Upload(&values[i], *buffer, 0, 8));
    ASSERT_OK(first->Record(*there));
    ASSERT_OK(second->Wait(*there));
    ASSERT_OK(second->Download(*buffer, 0, &seen[i], 8));
    ASSERT_OK(second->Record(*back));
    ASSERT_OK(first->Wait(*back));
  }
  ASSERT_OK(back->Synchronize());
  EXPECT_EQ(seen, values);
}

TEST(FakeDevice, Error_SticksUntilSynchronize) {
  int calls = 0;
  FakeDeviceOptions options;
  options.before_node = [&](const Graph&, NodeId) {
    return ++calls == 1 ? absl::InternalError("smoke") : absl::OkStatus();
  };
  FakeDevice device(std::move(options));
  GraphBuilder builder;
  const NodeId fill = builder.Make(Op::kFill, FillAttributes{{4, 1, 1, 1}, 2}, {});
  ASSERT_OK_AND_ASSIGN(const auto buffer, device.buffer_type().Allocate(16, BufferUsage::kCompute));
  ASSERT_OK_AND_ASSIGN(const auto backend, device.OpenBackend({}));
  const std::vector<NodeId> nodes = {fill};
  const std::vector<TensorPlace> places = {{buffer.get(), 0}};
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       backend->Prepare(GraphSlice{&builder.graph(), nodes, places}));
  ASSERT_OK(backend->Launch(*executable));
  ASSERT_OK(backend->Launch(*executable));  // skipped
  EXPECT_THAT(backend->Synchronize(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("fake0: smoke")));
  EXPECT_EQ(calls, 1);
  ASSERT_OK(backend->Launch(*executable));
  EXPECT_OK(backend->Synchronize());
  float value = 0;
  ASSERT_OK(buffer->Get(12, &value, 4));
  EXPECT_EQ(value, 2);
}

// Runs x * 2 with x and the result in these buffers of 16 bytes.
absl::Status RunScale(Device& device, Buffer& from, Buffer& to) {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 1, 1}, "x");
  const std::vector<NodeId> nodes = {builder.Scale(x, 2)};
  const std::vector<TensorPlace> places = {{&from, 0}, {&to, 0}};
  absl::StatusOr<std::unique_ptr<Backend>> backend = device.OpenBackend({});
  RETURN_IF_ERROR(backend.status());
  absl::StatusOr<std::unique_ptr<Executable>> executable =
      (*backend)->Prepare(GraphSlice{&builder.graph(), nodes, places});
  RETURN_IF_ERROR(executable.status());
  RETURN_IF_ERROR((*backend)->Launch(**executable));
  return (*backend)->Synchronize();
}

TEST(FakeDevice, KernelsWork_InMemoryOfOthersAndOfTheHost) {
  FakeDevice owner(FakeDeviceOptions{});
  HostBufferType host("host", owner, 1 << 20);
  FakeDeviceOptions options;
  options.name = "accel";
  options.kind = DeviceKind::kAccelerator;
  options.shares_memory_of = &owner;
  options.accepted_buffer_types = {"host"};
  FakeDevice accelerator(std::move(options));
  EXPECT_EQ(accelerator.kind(), DeviceKind::kAccelerator);
  EXPECT_EQ(&accelerator.buffer_type(), &owner.buffer_type());
  ASSERT_OK_AND_ASSIGN(const auto shared,
                       accelerator.buffer_type().Allocate(16, BufferUsage::kAny));
  EXPECT_EQ(accelerator.used_bytes(), 0);
  EXPECT_EQ(accelerator.memory().free_bytes, owner.memory().free_bytes);
  ASSERT_OK_AND_ASSIGN(const auto plain, host.Allocate(16, BufferUsage::kWeights));
  const float values[] = {1, 2, 3, 4};
  ASSERT_OK(plain->Set(0, values, 16));
  ASSERT_OK(RunScale(accelerator, *plain, *shared));
  ASSERT_OK(RunScale(accelerator, *shared, *plain));
  float result[4] = {};
  ASSERT_OK(plain->Get(0, result, 16));
  EXPECT_EQ(result[3], 16);
  EXPECT_EQ(accelerator.traffic().synchronizations, 2);
  // The owner was not told to use host memory, others not to use the owner's.
  EXPECT_THAT(RunScale(owner, *plain, *shared),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("fake0 cannot read host")));
  FakeDevice stranger(FakeDeviceOptions{});
  EXPECT_FALSE(RunScale(stranger, *shared, *shared).ok());
}

TEST(FakeDevice, MemoryWithoutBytes_IsRefusedByItsKernels) {
  NullDevice null(NullDeviceOptions{});
  FakeDeviceOptions options;
  options.accepted_buffer_types = {null.buffer_type().name()};
  FakeDevice device(std::move(options));
  ASSERT_OK_AND_ASSIGN(const auto buffer, null.buffer_type().Allocate(16, BufferUsage::kAny));
  EXPECT_THAT(RunScale(device, *buffer, *buffer),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("neither in fake nor")));
}

}  // namespace
}  // namespace weft
