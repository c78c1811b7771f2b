#include "common/host/host_facts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace weft {
namespace {

class HostFactsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(::testing::TempDir()) / "host_facts";
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  HostFacts Read() const { return ReadHostFacts(root_.string()); }

  std::filesystem::path root_;
};

TEST_F(HostFactsTest, Read_Takes_WhatTheFilesSay) {
  Write("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    8192 kB\n");
  Write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  Write("sys/fs/cgroup/memory.max", "4194304\n");
  Write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  Write("sys/class/infiniband/mlx5_0", "");
  Write("dev/shm/.keep", "");
  const HostFacts facts = Read();
  EXPECT_EQ(facts.memory_bytes, 16 << 20);
  EXPECT_EQ(facts.memory_available, 8 << 20);
  EXPECT_EQ(facts.memory_limit, 4 << 20);
  EXPECT_EQ(facts.processor_limit, 1.5);
  EXPECT_EQ(facts.huge_pages, "madvise");
  EXPECT_TRUE(facts.has_rdma);
  EXPECT_GT(facts.shared_bytes, 0);  // of the file system that the folder is on
}

TEST_F(HostFactsTest, Read_KnowsNothing_OfFilesThatAreMissingOrDamaged) {
  Write("proc/meminfo", "MemTotal: 99999999999999999999 kB\nMemAvailable: many\n");
  Write("sys/fs/cgroup/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/memory.max", "max\n");
  Write("sys/kernel/mm/transparent_hugepage/enabled", "always ]madvise[\n");
  const HostFacts facts = Read();
  EXPECT_EQ(facts.memory_bytes, -1);
  EXPECT_EQ(facts.memory_available, -1);
  EXPECT_EQ(facts.memory_limit, -1);
  EXPECT_EQ(facts.processor_limit, 0);
  EXPECT_EQ(facts.huge_pages, "");
  EXPECT_EQ(facts.shared_bytes, -1);
  EXPECT_FALSE(facts.has_rdma);
}

TEST_F(HostFactsTest, Read_Tells_OfThisMachine) {
  const HostFacts facts = ReadHostFacts();
  EXPECT_GT(facts.unix_microseconds, int64_t{1'700'000'000} * 1'000'000);
  EXPECT_GT(facts.memory_bytes, 0);
  EXPECT_GE(facts.processors, 1);
  EXPECT_FALSE(facts.kernel.empty());
}

}  // namespace
}  // namespace weft
