#include "common/base/memory_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

TEST(MemoryFileTest, ReplacedUnderOnePath) {
  ASSERT_OK_AND_ASSIGN(const auto file, MemoryFile::Create("test", "first"));
  const std::string path = file->path();
  EXPECT_EQ(FileText(path), "first");
  const int open_before = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(open_before, 0);
  std::set<int64_t> times;
  for (const char* text : {"second text", "3"}) {
    ASSERT_OK(file->Replace(text));
    EXPECT_EQ(file->path(), path);
    EXPECT_EQ(FileText(path), text);
    struct stat facts = {};
    ASSERT_EQ(stat(path.c_str(), &facts), 0);
    times.insert(facts.st_mtim.tv_sec);
  }
  EXPECT_EQ(times.size(), 2U);
  EXPECT_EQ(times.count(0), 0U);  // which gRPC takes for an error
  std::string old(10, '\0');
  EXPECT_EQ(read(open_before, old.data(), old.size()), 5);
  close(open_before);
}

TEST(MemoryFileTest, ItsDescriptorsAreClosed) {
  const int before = dup(0);
  close(before);
  {
    ASSERT_OK_AND_ASSIGN(const auto file, MemoryFile::Create("test", "text"));
    for (int i = 0; i < 10; ++i) ASSERT_OK(file->Replace("text"));
  }
  const int after = dup(0);
  close(after);
  EXPECT_EQ(after, before);
}

TEST(MemoryFileTest, ReadersFindWholeTexts) {
  const std::string texts[2] = {std::string(5000, 'a'), std::string(3000, 'b')};
  ASSERT_OK_AND_ASSIGN(const auto file, MemoryFile::Create("test", texts[0]));
  std::atomic<bool> done{false};
  std::atomic<int> strange{0};
  std::thread reader([&] {
    while (!done) {
      const std::string text = FileText(file->path());
      if (text != texts[0] && text != texts[1]) ++strange;
    }
  });
  for (int i = 0; i < 1000; ++i) EXPECT_OK(file->Replace(texts[i % 2]));
  done = true;
  reader.join();
  EXPECT_EQ(strange, 0);
}

}  // namespace
}  // namespace weft
