#include "common/host/control_group.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/processors.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kMiB = int64_t{1} << 20;

class ControlGroupTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_.File(path)).parent_path());
    root_.Write(path, text);
  }
  ControlGroupLimits Read() const { return ReadControlGroupLimits(root_.path()); }

  const TemporaryFolder root_;
};

TEST_F(ControlGroupTest, Nothing_NoLimits) { EXPECT_EQ(Read(), ControlGroupLimits()); }

TEST_F(ControlGroupTest, Version2_InAContainer_IsAtTheTop) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "250000 100000\n");
  Write("sys/fs/cgroup/memory.max", "4294967296\n");
  EXPECT_EQ(Read(), (ControlGroupLimits{2.5, 4 * kGiB}));
}

TEST_F(ControlGroupTest, Version2_OfAService_IsTheLeastOnTheWay) {
  Write("proc/self/cgroup", "0::/weft.slice/weft-worker.service\n");
  Write("sys/fs/cgroup/weft.slice/cpu.max", "400000 100000\n");
  Write("sys/fs/cgroup/weft.slice/memory.max", "1073741824\n");
  Write("sys/fs/cgroup/weft.slice/weft-worker.service/cpu.max", "300000 100000\n");
  Write("sys/fs/cgroup/weft.slice/weft-worker.service/memory.max", "2147483648\n");
  Write("sys/fs/cgroup/other.slice/cpu.max", "1000 100000\n");
  EXPECT_EQ(Read(), (ControlGroupLimits{3, kGiB}));
}

TEST_F(ControlGroupTest, Version1_EachControllerHasAFolder) {
  Write("proc/self/cgroup",
        "12:memory:/docker/abc\n11:cpu,cpuacct:/docker/abc\n3:freezer:/docker/abc\n0::/x\n");
  Write("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "150000\n");
  Write("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "3221225472\n");
  EXPECT_EQ(Read(), (ControlGroupLimits{1.5, 3 * kGiB}));
}

TEST_F(ControlGroupTest, NonsenseAndNoLimit_AreNone) {
  for (const char* text :
       {"max 100000\n", "-1 100000", "0 0", "1", "", "a b\n", "1 0", "99999999999999999999 1"}) {
    Write("sys/fs/cgroup/cpu.max", text);
    Write("sys/fs/cgroup/memory.max", "max\n");
    EXPECT_EQ(Read(), ControlGroupLimits()) << text;
  }
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  // A path that leads elsewhere, a line that is none, and one that never ends.
  Write("proc/self/cgroup",
        "0::/../../secret\nnonsense\n1:cpu:/\n:::::\n0::" + std::string(40000, '/') + "\n");
  Write("secret/cpu.max", "1000 100000\n");
  EXPECT_EQ(Read(), ControlGroupLimits());
}

TEST(ControlGroupDefaultsTest, Threads_AreWholeProcessorsOfTheLimit) {
  const auto threads = [](int32_t available, double limit) {
    return DefaultThreads(available, {limit, -1});
  };
  EXPECT_EQ(threads(8, 0), 8);
  EXPECT_EQ(threads(8, 2.5), 2);
  EXPECT_EQ(threads(8, 0.3), 1);
  EXPECT_EQ(threads(2, 16), 2);
  EXPECT_EQ(threads(2, 1e18), 2);
  EXPECT_GE(DefaultThreads(), 1);
  EXPECT_LE(DefaultThreads(), AvailableProcessors());
}

TEST(ControlGroupDefaultsTest, Memory_LeavesRoomInTheLimit) {
  const auto memory = [](int64_t machine, int64_t limit) {
    return DefaultMemoryBytes(machine, {0, limit});
  };
  EXPECT_EQ(memory(16 * kGiB, -1), 0);
  EXPECT_EQ(memory(16 * kGiB, 16 * kGiB), 0);
  EXPECT_EQ(memory(16 * kGiB, 9223372036854771712), 0);
  EXPECT_EQ(memory(16 * kGiB, 8 * kGiB), 8 * kGiB - 512 * kMiB);
  EXPECT_EQ(memory(16 * kGiB, 2 * kGiB), 2 * kGiB - 256 * kMiB);
  EXPECT_EQ(memory(16 * kGiB, 128 * kMiB), 64 * kMiB);
  EXPECT_EQ(memory(16 * kGiB, 0), 1);             // not 0, which is no limit
  EXPECT_EQ(memory(0, kGiB), kGiB - 256 * kMiB);  // of a machine that does not tell
}

TEST(OfferedMemory, NeverMoreThanTheMachineHas) {
  EXPECT_EQ(OfferedMemoryBytes(1000, 5000), 1000);
  EXPECT_EQ(OfferedMemoryBytes(6000, 5000), 5000);
  EXPECT_EQ(OfferedMemoryBytes(6000, 0), 6000);  // the system does not say
  EXPECT_EQ(OfferedMemoryBytes(0, 5000), DefaultMemoryBytes());
}

}  // namespace
}  // namespace weft
