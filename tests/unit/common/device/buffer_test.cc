// Ranges and copies between buffers of every kind.
#include "common/device/buffer.h"

#include <limits>
#include <vector>

#include "common/device/host_buffer.h"
#include "common/device/null_device.h"
#include "gtest/gtest.h"
#include "tests/support/fake_device.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

class BufferTest : public ::testing::Test {
 protected:
  std::unique_ptr<Buffer> Host(int64_t bytes) {
    return *host_type_.Allocate(bytes, BufferUsage::kAny);
  }
  std::unique_ptr<Buffer> Masked(int64_t bytes) {
    return *fake_.buffer_type().Allocate(bytes, BufferUsage::kAny);
  }

  FakeDevice fake_{FakeDeviceOptions{}};
  HostBufferType host_type_{"host", fake_, int64_t{1} << 30};
};

std::vector<uint8_t> Counting(size_t count) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 256);
  return bytes;
}

std::vector<uint8_t> Content(Buffer& buffer) {
  std::vector<uint8_t> bytes(static_cast<size_t>(buffer.size()));
  EXPECT_OK(buffer.Get(0, bytes.data(), buffer.size()));
  return bytes;
}

TEST_F(BufferTest, CheckRange_AcceptsExactlyWhatIsInside) {
  const auto buffer = Host(100);
  for (const auto& [offset, bytes] :
       {std::pair<int64_t, int64_t>{0, 100}, {100, 0}, {99, 1}, {0, 0}}) {
    EXPECT_OK(CheckRange(*buffer, offset, bytes));
  }
  for (const auto& [offset, bytes] : {std::pair<int64_t, int64_t>{0, 101},
                                      {100, 1},
                                      {-1, 1},
                                      {0, -1},
                                      {101, 0},
                                      {kMost, kMost},
                                      {1, kMost},
                                      {kMost, 1},
                                      {std::numeric_limits<int64_t>::min(), 1}}) {
    EXPECT_THAT(CheckRange(*buffer, offset, bytes),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("leave a buffer of 100")));
  }
}

TEST_F(BufferTest, SetGetFill_KeepToTheirRange) {
  for (const auto& buffer : {Host(64), Masked(64)}) {
    ASSERT_OK(buffer->Fill(0, 0x11, 64));
    const uint8_t two[] = {1, 2};
    ASSERT_OK(buffer->Set(62, two, 2));
    ASSERT_OK(buffer->Fill(3, 0x22, 1));
    std::vector<uint8_t> want(64, 0x11);
    want[3] = 0x22;
    want[62] = 1;
    want[63] = 2;
    EXPECT_EQ(Content(*buffer), want);
    EXPECT_FALSE(buffer->Set(63, two, 2).ok());
    EXPECT_FALSE(buffer->Fill(64, 0, 1).ok());
    uint8_t byte = 0;
    EXPECT_FALSE(buffer->Get(-1, &byte, 1).ok());
    EXPECT_EQ(Content(*buffer), want);
  }
}

TEST_F(BufferTest, CopyBuffer_BetweenAllKinds_MovesTheBytes) {
  // More than one staging area, not a multiple of it.
  const int64_t size = (int64_t{5} << 19) + 13;
  const std::vector<uint8_t> bytes = Counting(static_cast<size_t>(size));
  const auto make = [&](bool masked) { return masked ? Masked(size + 5) : Host(size + 5); };
  for (const bool from : {false, true}) {
    for (const bool to : {false, true}) {
      const auto source = make(from);
      const auto destination = make(to);
      ASSERT_OK(source->Set(5, bytes.data(), size));
      ASSERT_OK(destination->Fill(0, 9, size + 5));
      ASSERT_OK(CopyBuffer(*source, 5, *destination, 2, size));
      std::vector<uint8_t> want(static_cast<size_t>(size) + 5, 9);
      std::copy(bytes.begin(), bytes.end(), want.begin() + 2);
      EXPECT_TRUE(Content(*destination) == want) << from << to;
      EXPECT_FALSE(CopyBuffer(*source, 6, *destination, 0, size).ok());
      EXPECT_FALSE(CopyBuffer(*source, 0, *destination, 6, size).ok());
      EXPECT_FALSE(CopyBuffer(*source, 0, *destination, 0, -1).ok());
      EXPECT_OK(CopyBuffer(*source, size + 5, *destination, size + 5, 0));
    }
  }
}

TEST_F(BufferTest, CopyBuffer_OverlappingInOneBuffer_ActsAsIfByWayOfACopy) {
  const int64_t size = int64_t{3} << 20;
  const std::vector<uint8_t> bytes = Counting(static_cast<size_t>(size));
  for (const bool masked : {false, true}) {
    for (const auto& [from, to] : {std::pair<int64_t, int64_t>{0, 1000}, {1000, 0}}) {
      const auto buffer = masked ? Masked(size + 1000) : Host(size + 1000);
      ASSERT_OK(buffer->Set(from, bytes.data(), size));
      ASSERT_OK(CopyBuffer(*buffer, from, *buffer, to, size));
      std::vector<uint8_t> moved(static_cast<size_t>(size));
      ASSERT_OK(buffer->Get(to, moved.data(), size));
      EXPECT_TRUE(moved == bytes) << masked << " " << from;
    }
  }
}

TEST_F(BufferTest, HostBuffers_AreAlignedAndLimited) {
  HostBufferType small("small", fake_, 1000);
  EXPECT_THAT(small.Allocate(1001, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("small: cannot allocate")));
  EXPECT_THAT(small.Allocate(-1, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1 bytes")));
  ASSERT_OK_AND_ASSIGN(const auto empty, small.Allocate(0, BufferUsage::kCompute));
  EXPECT_EQ(empty->size(), 0);
  EXPECT_EQ(empty->usage(), BufferUsage::kCompute);
  EXPECT_OK(empty->Fill(0, 1, 0));
  for (const int64_t bytes : {1, 63, 1000}) {
    ASSERT_OK_AND_ASSIGN(const auto buffer, small.Allocate(bytes, BufferUsage::kAny));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->host_data()) % 64, 0u);
  }
}

TEST_F(BufferTest, WrappedMemory_IsUsedInPlace) {
  alignas(64) uint8_t memory[128] = {};
  ASSERT_OK_AND_ASSIGN(const auto buffer, host_type_.Wrap(memory + 32, 96, BufferUsage::kWeights));
  EXPECT_EQ(buffer->host_data(), memory + 32);
  ASSERT_OK(buffer->Fill(95, 3, 1));
  EXPECT_EQ(memory[127], 3);
  EXPECT_FALSE(host_type_.Wrap(memory + 1, 8, BufferUsage::kWeights).ok());
  EXPECT_FALSE(host_type_.Wrap(nullptr, 8, BufferUsage::kWeights).ok());
  EXPECT_FALSE(host_type_.Wrap(memory, -8, BufferUsage::kWeights).ok());
}

}  // namespace
}  // namespace weft
