#include "common/base/mapped_file.h"

#include <sys/stat.h>

#include <string>
#include <vector>

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

TEST(MappedFile, Touch_TellsWhatWasReadAndEndsWithItsError) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto file,
                       MappedFile::Open(folder.Write("f", std::string(20 << 20, 'x'))));
  std::vector<int64_t> pieces;
  const auto keep = [&](int64_t bytes) {
    pieces.push_back(bytes);
    return absl::OkStatus();
  };
  ASSERT_OK(file->Touch(5, (20 << 20) - 5, keep));
  EXPECT_EQ(pieces, (std::vector<int64_t>{8 << 20, 8 << 20, (4 << 20) - 5}));
  EXPECT_OK(file->Touch(20 << 20, 0, keep));
  EXPECT_THAT(file->Touch(0, 20 << 20, [](int64_t) { return absl::CancelledError("enough"); }),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(file->Touch(5, 20 << 20, keep), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(file->Touch((20 << 20) + 1, 0, keep), StatusIs(absl::StatusCode::kOutOfRange));
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
