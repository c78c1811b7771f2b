#include "common/base/mapped_file.h"

#include <sys/stat.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(MappedFile, Open_GivesAllBytes) {
  const TemporaryFolder folder;
  const std::string text(100000, 'x');
  const std::string path = folder.Write("f", text);
  ASSERT_OK_AND_ASSIGN(const auto file, MappedFile::Open(path));
  EXPECT_EQ(std::string(file->bytes().begin(), file->bytes().end()), text);
  EXPECT_EQ(file->path(), path);
  file->WillNeed(5000, 1 << 30);  // advice beyond the end is cut, not a fault
  file->WillNeed(1 << 30, 1);
}

TEST(MappedFile, EmptyFile_IsAnEmptySpan) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto file, MappedFile::Open(folder.Write("f", "")));
  EXPECT_TRUE(file->bytes().empty());
  file->WillNeed(0, 1);
}

TEST(MappedFile, WhatCannotBeMapped_IsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT(MappedFile::Open(folder.File("none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none: cannot open")));
  EXPECT_THAT(MappedFile::Open(folder.path()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a regular file")));
  EXPECT_THAT(MappedFile::Open(folder.File(std::string(300, 'n'))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot open")));
  std::filesystem::create_symlink("loop", folder.File("loop"));
  EXPECT_THAT(MappedFile::Open(folder.File("loop")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot open")));
}

TEST(MappedFile, PipeWithoutWriter_DoesNotBlock) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo(folder.File("pipe").c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::Open(folder.File("pipe")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a regular file")));
}

}  // namespace
}  // namespace weft
