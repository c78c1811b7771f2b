#include "coordinator/cli/output_file.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::ptrdiff_t FilesIn(const std::string& path) {
  const fs::directory_iterator files(fs::path(path).parent_path());
  return std::distance(fs::begin(files), fs::end(files));
}

absl::Status WriteAll(const std::string& path, const std::string& content, bool finish) {
  auto file = OutputFile::Create(path, {});
  if (!file.ok()) return file.status();
  const absl::Status written = (*file)->Write(content.data(), content.size());
  return written.ok() && finish ? (*file)->Finish() : written;
}

TEST(OutputFile, Finished_IsThere) {
  const TemporaryFolder folder;
  const std::string path = folder.File("page.html");
  ASSERT_OK(WriteAll(path, "new", true));
  EXPECT_EQ(FileText(path), "new");
  ASSERT_OK(WriteAll(path, "x", true));
  EXPECT_EQ(FileText(path), "x");
  EXPECT_EQ(FilesIn(path), 1);
}

TEST(OutputFile, NotFinished_LeavesWhatWasThere) {
  const TemporaryFolder folder;
  const std::string path = folder.File("page.html");
  ASSERT_OK(WriteAll(path, "half", false));
  EXPECT_EQ(FilesIn(path), 0);
  folder.Write("page.html", "old");
  ASSERT_OK(WriteAll(path, "half", false));
  EXPECT_EQ(FileText(path), "old");
  EXPECT_EQ(FilesIn(path), 1);
}

// As after kill -9 or Ctrl-C: no destructor runs.
TEST(OutputFile, ProcessThatEnds_LeavesWhatWasThere) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("page.html", "old");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto file = OutputFile::Create(path, {});
    const bool ok = file.ok() && (*file)->Write("half", 4).ok();
    _exit(ok ? 7 : 1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(WEXITSTATUS(state), 7);
  EXPECT_EQ(FileText(path), "old");
}

TEST(OutputFile, Replaced_KeepsPermissionsAndLinks) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("page.html", "old");
  const std::string link = folder.File("link.html");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  fs::create_symlink(path, link);
  ASSERT_OK(WriteAll(link, "new", true));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(FileText(path), "new");
  struct stat state = {};
  ASSERT_EQ(stat(path.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 07777U, 0640U);
}

TEST(OutputFile, BadTargets_AreErrorsThatNameThem) {
  const TemporaryFolder folder;
  const std::string input = folder.Write("model.gguf", "weights");
  const std::string link = folder.File("hard.gguf");
  fs::create_hard_link(input, link);
  const std::vector<std::string> inputs = {input};
  EXPECT_THAT(OutputFile::Create(link, inputs).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("hard.gguf: is the input")));
  EXPECT_EQ(FileText(input), "weights");
  EXPECT_THAT(OutputFile::Create("/dev/null", {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a regular file")));
  EXPECT_THAT(OutputFile::Create(fs::path(input).parent_path().string(), {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a regular file")));
  for (const std::string& path : {folder.File("no/such/page.html"), input + "/page.html",
                                  folder.File("new/"), std::string()}) {
    const absl::Status status = OutputFile::Create(path, {}).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(path + ": cannot create"));
  }
}

}  // namespace
}  // namespace weft
