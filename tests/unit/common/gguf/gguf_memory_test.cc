// The reader's memory stays within what it promises for files made to blow it up (INV-H1 of the
// spec). Each case runs in a process of its own, whose peak the system reports.
#include <malloc.h>
#include <sys/resource.h>

#include <cstdio>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/gguf/gguf_reader.h"
#include "gtest/gtest.h"
#include "tests/unit/common/gguf/gguf_samples.h"

namespace weft {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

int64_t PeakBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * int64_t{1024};
}

// Finds the smallest allowance (in whole MiB) with which the reader takes the file; exits with 0 if
// it then stayed within it, up to what the C library keeps for itself.
[[noreturn]] void ReadWithTheSmallestAllowance(const std::string& file) {
  constexpr int64_t kSlack = 4 * kMiB;
  const int64_t before = PeakBytes();
  const int64_t size = static_cast<int64_t>(file.size());
  int64_t low = -1;    // in MiB: refused
  int64_t high = 256;  // taken
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (ReadGguf(AsSpan(file), "m.gguf", middle * kMiB).ok() ? high : low) = middle;
  }
  const bool taken = ReadGguf(AsSpan(file), "m.gguf", high * kMiB).ok();
  const int64_t used = PeakBytes() - before;
  const int64_t limit = 2 * size + high * kMiB;
  std::fprintf(stderr, "file of %lld bytes: %lld used, limit %lld\n", static_cast<long long>(size),
               static_cast<long long>(used), static_cast<long long>(limit));
  std::exit(taken && used <= limit + kSlack ? 0 : 1);
}

std::string Strings(int count, int length) {
  GgufBytes file;
  file.Header(0, 1).ArrayKey("k", 8, count);
  for (int i = 0; i < count; ++i) file.Text(std::string(length, 'x'));
  return file.bytes();
}

std::string Keys(int count, int length) {
  GgufBytes file;
  file.Header(0, count);
  for (int i = 0; i < count; ++i) {
    std::string key = absl::StrCat(i);
    if (static_cast<int>(key.size()) < length) key.resize(length, 'k');
    file.Text(key).U32(0).U8(1);
  }
  return file.bytes();
}

std::string Tensors(int count, int length) {
  GgufBytes file;
  file.Header(count, 1).U32Key("general.alignment", 8);
  for (int i = 0; i < count; ++i) {
    std::string name = absl::StrCat(i);
    if (static_cast<int>(name.size()) < length) name.resize(length, 'n');
    file.Tensor(name, {}, 24, i * 8);
  }
  return file.AlignTo(8).Zeros(count * 8).bytes();
}

TEST(GgufReaderMemory, StaysWithinTheLimit) {
  const std::pair<const char*, std::function<std::string()>> cases[] = {
      {"empty strings", [] { return Strings(400000, 0); }},
      {"short strings", [] { return Strings(400000, 15); }},
      {"strings of 16 bytes", [] { return Strings(400000, 16); }},
      {"long strings", [] { return Strings(100, 100000); }},
      {"short keys", [] { return Keys(80000, 1); }},
      {"keys of 16 bytes", [] { return Keys(80000, 16); }},
      {"long keys", [] { return Keys(200, 65535); }},
      {"short tensor names", [] { return Tensors(80000, 1); }},
      {"long tensor names", [] { return Tensors(80000, 63); }},
  };
  for (const auto& [name, make] : cases) {
    SCOPED_TRACE(name);
    const std::string file = make();
    // Free memory that the child would inherit, and not be seen to take, goes back first.
    malloc_trim(0);
    EXPECT_EXIT(ReadWithTheSmallestAllowance(file), testing::ExitedWithCode(0), "file");
  }
}

}  // namespace
}  // namespace weft
