#include "common/cpu/cpu_buffer.h"

#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "common/cpu/cpu_device.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLimit = int64_t{64} << 20;

std::unique_ptr<CpuDevice> Open() {
  CpuDeviceOptions options;
  options.memory_limit_bytes = kLimit;
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(options);
  EXPECT_OK(device);
  return *std::move(device);
}

TEST(CpuBufferTest, Allocate_AnySize_IsAlignedAndWritable) {
  const std::unique_ptr<CpuDevice> device = Open();
  for (const int64_t bytes : {0, 1, 63, 64, 4097, 3 << 20}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Buffer> buffer,
                         device->buffer_type().Allocate(bytes, BufferUsage::kAny));
    EXPECT_EQ(buffer->size(), bytes);
    ASSERT_NE(buffer->host_data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->host_data()) % 64, 0u);
    ASSERT_OK(buffer->Fill(0, 0x5A, bytes));
  }
}

TEST(CpuBufferTest, Allocate_BeyondTheLimit_IsAnErrorAndFreeingMakesRoom) {
  const std::unique_ptr<CpuDevice> device = Open();
  BufferType& type = device->buffer_type();
  EXPECT_EQ(device->memory().total_bytes, kLimit);
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Buffer> most,
                         type.Allocate(kLimit - 1000, BufferUsage::kWeights));
    EXPECT_EQ(device->memory().free_bytes, 1000);
    EXPECT_THAT(type.Allocate(1001, BufferUsage::kAny),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1001 bytes do not fit")));
    EXPECT_OK(type.Allocate(1000, BufferUsage::kAny));
  }
  EXPECT_EQ(device->memory().free_bytes, kLimit);
  EXPECT_OK(type.Allocate(kLimit, BufferUsage::kAny));
}

TEST(CpuBufferTest, Allocate_AbsurdSizes_AreErrors) {
  const std::unique_ptr<CpuDevice> device = Open();
  EXPECT_THAT(device->buffer_type().Allocate(-1, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1 bytes")));
  EXPECT_THAT(
      device->buffer_type().Allocate(std::numeric_limits<int64_t>::max(), BufferUsage::kAny),
      StatusIs(absl::StatusCode::kResourceExhausted, testing::_));
}

TEST(CpuBufferTest, SetAndGet_OutsideTheBuffer_AreErrors) {
  const std::unique_ptr<CpuDevice> device = Open();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Buffer> buffer,
                       device->buffer_type().Allocate(100, BufferUsage::kAny));
  const std::vector<uint8_t> data = {1, 2, 3, 4};
  std::vector<uint8_t> back(4);
  EXPECT_OK(buffer->Set(96, data.data(), 4));
  EXPECT_OK(buffer->Get(96, back.data(), 4));
  EXPECT_EQ(back, data);
  EXPECT_THAT(buffer->Set(97, data.data(), 4),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::_));
  EXPECT_THAT(buffer->Get(-1, back.data(), 4),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::_));
  EXPECT_THAT(buffer->Fill(0, 0, 101), StatusIs(absl::StatusCode::kInvalidArgument, testing::_));
}

TEST(CpuBufferTest, WrapHostMemory_IsTheSameMemoryAndNotCounted) {
  const std::unique_ptr<CpuDevice> device = Open();
  std::vector<uint8_t> memory(256, 7);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Buffer> buffer,
                       device->WrapHostMemory(memory.data(), 256, BufferUsage::kWeights));
  EXPECT_EQ(buffer->host_data(), memory.data());
  EXPECT_EQ(buffer->usage(), BufferUsage::kWeights);
  EXPECT_EQ(device->memory().free_bytes, kLimit);
  EXPECT_OK(device->Supports(buffer->type()));
  EXPECT_THAT(device->WrapHostMemory(nullptr, 1, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::_));
}

TEST(CpuBufferTest, Allocate_FromSeveralThreads_KeepsTheCount) {
  const std::unique_ptr<CpuDevice> device = Open();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 1; i < 200; ++i) {
        EXPECT_OK(device->buffer_type().Allocate(i * 64, BufferUsage::kAny));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device->memory().free_bytes, kLimit);
}

}  // namespace
}  // namespace weft
