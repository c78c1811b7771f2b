#include "common/base/small_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kMost = 10000;

TEST(SmallFileTest, WholeTextUpToTheLimit) {
  const TemporaryFolder folder;
  for (const size_t size : {0UL, 1UL, 4095UL, 4096UL, 4097UL, kMost - 1, kMost}) {
    const std::string text(size, 'x');
    ASSERT_OK_AND_ASSIGN(const std::string read, ReadSmallFile(folder.Write("f", text), kMost));
    EXPECT_EQ(read, text);
  }
  EXPECT_THAT(ReadSmallFile(folder.Write("f", std::string(kMost + 1, 'x')), kMost),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(folder.File("f")), HasSubstr("longer than 10000 bytes"))));
}

TEST(SmallFileTest, FilesThatDoNotTellTheirSize) {
  ASSERT_OK_AND_ASSIGN(const std::string read, ReadSmallFile("/proc/self/stat", kMost));
  EXPECT_THAT(read, HasSubstr(std::to_string(getpid())));
  // Longer than the first read, and than what is allowed.
  EXPECT_OK(ReadSmallFile("/proc/self/smaps", 64 << 20));
  EXPECT_THAT(ReadSmallFile("/proc/self/smaps", 5000),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("longer than 5000 bytes")));
}

TEST(SmallFileTest, HugeFile_IsRefusedUnread) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("huge", "");
  ASSERT_EQ(truncate(path.c_str(), off_t{1} << 40), 0);
  EXPECT_THAT(ReadSmallFile(path, kMost),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("longer than")));
}

TEST(SmallFileTest, LinksAreFollowed) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink(folder.Write("f", "text"), folder.File("link"));
  ASSERT_OK_AND_ASSIGN(const std::string read, ReadSmallFile(folder.File("link"), kMost));
  EXPECT_EQ(read, "text");
}

// None of them is waited for, or read.
TEST(SmallFileTest, WhatIsNoFile_IsNamed) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo(folder.File("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", folder.File("zero"));
  std::filesystem::create_symlink("loop", folder.File("loop"));
  for (const std::string& path : {folder.File("pipe"), folder.File("zero"), folder.File("loop"),
                                  folder.path(), folder.File(std::string(300, 'n'))}) {
    EXPECT_THAT(ReadSmallFile(path, kMost),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
  }
  for (const std::string& path : {folder.File("none"), folder.Write("f", "") + "/below"}) {
    EXPECT_THAT(ReadSmallFile(path, kMost), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
  }
}

}  // namespace
}  // namespace weft
