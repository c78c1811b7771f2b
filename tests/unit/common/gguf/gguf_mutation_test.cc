// Seeded random damage to valid files, and the fuzz target's corpus, through the reader in the
// ordinary test run.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_seed.h"
#include "tests/unit/common/gguf/gguf_reader_check.h"
#include "tests/unit/common/gguf/gguf_samples.h"

namespace weft {
namespace {

// Numbers at which arithmetic tends to break.
uint64_t EdgeNumber(Random& random) {
  constexpr uint64_t kEdges[] = {0, 1, 2, 31, 32, 33, 255, 65535, 65536};
  const uint64_t power = uint64_t{1} << random.Between(0, 63);
  switch (random.Between(0, 4)) {
    case 0:
      return power;
    case 1:
      return power - 1;
    case 2:
      return ~power;
    case 3:
      return kEdges[random.Between(0, std::size(kEdges) - 1)];
    default:
      return uint64_t{0} - kEdges[random.Between(0, std::size(kEdges) - 1)];
  }
}

void Damage(Random& random, const std::string& other, std::string& bytes) {
  const size_t at = random.Between(0, static_cast<int64_t>(bytes.size()));
  const size_t length = random.Between(0, 24);
  const uint64_t number = EdgeNumber(random);
  const size_t width = size_t{1} << random.Between(0, 3);
  switch (random.Between(0, 5)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Between(0, 7)));
      break;
    case 1:
    case 2:
      if (at + width <= bytes.size()) {
        bytes.replace(at, width, reinterpret_cast<const char*>(&number), width);
      }
      break;
    case 3:
      bytes.erase(at, length);
      break;
    case 4:
      bytes.insert(at, bytes.substr(random.Between(0, static_cast<int64_t>(bytes.size())), length));
      break;
    default:
      bytes = bytes.substr(0, at) + other.substr(std::min(at, other.size()));
      break;
  }
}

TEST(GgufReaderMutations, DamagedFiles_AreReadOrRefusedCleanly) {
  constexpr int kRounds = 100000;
  Random random(TestSeed(2024));
  const auto samples = GgufSamples();
  const auto pick = [&] { return samples[random.Between(0, samples.size() - 1)].second; };
  int read = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = pick();
    const int64_t count = random.Between(1, 4);
    for (int64_t i = 0; i < count; ++i) Damage(random, pick(), bytes);
    // On the heap, so that the address sanitizer sees a read beyond the end.
    const std::vector<uint8_t> copy(bytes.begin(), bytes.end());
    read += CheckGgufReader(copy) ? 1 : 0;
  }
  // Damage that is mostly refused, yet often enough not noticed, reaches all of the reader.
  EXPECT_GT(read, kRounds / 100);
  EXPECT_LT(read, kRounds * 3 / 4);
}

TEST(GgufReaderMutations, Corpus_IsReadOrRefusedCleanly) {
  const char* root = std::getenv("WEFT_SOURCE_DIR");
  ASSERT_NE(root, nullptr) << "run by ctest, or set WEFT_SOURCE_DIR to the root of the tree";
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(root) + "/tests/fuzz/corpus/gguf_reader")) {
    SCOPED_TRACE(entry.path());
    const std::string bytes = FileText(entry.path());
    CheckGgufReader(AsSpan(bytes));
    ++files;
  }
  EXPECT_GE(files, 5);
}

}  // namespace
}  // namespace weft
