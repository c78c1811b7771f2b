// How tokenizing time grows: long runs of one character at 250 KB and 1 MB, and the ratio of the
// two, which must stay below 6. Not a test: it measures time. Usage: weft_tokenizer_bench
// MODEL.gguf [TEXT_FILE]
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

#include "common/gguf/gguf_file.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {
namespace {

constexpr int64_t kSmallBytes = 250'000;
constexpr int64_t kLargeBytes = 1'000'000;

std::string Repeat(const std::string& unit, int64_t bytes) {
  std::string text;
  while (static_cast<int64_t>(text.size()) < bytes) text += unit;
  return text;
}

// Processor time of the fastest of five runs, in milliseconds; negative on an error.
double EncodeMilliseconds(const Tokenizer& tokenizer, const std::string& text) {
  double best = 1e30;
  for (int run = 0; run < 5; ++run) {
    const std::clock_t start = std::clock();
    const auto ids = tokenizer.Encode(text, {});
    const std::clock_t end = std::clock();
    if (!ids.ok()) {
      std::fprintf(stderr, "%s\n", ids.status().ToString().c_str());
      return -1;
    }
    best = std::min(best, 1e3 * static_cast<double>(end - start) / CLOCKS_PER_SEC);
  }
  return best;
}

int Run(const char* model_path, const char* text_path) {
  const auto file = GgufFile::Open(model_path);
  if (!file.ok()) {
    std::fprintf(stderr, "%s\n", file.status().ToString().c_str());
    return 2;
  }
  const std::clock_t start = std::clock();
  const auto tokenizer = Tokenizer::Create((*file)->metadata());
  const std::clock_t end = std::clock();
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.status().ToString().c_str());
    return 2;
  }
  std::printf("load %.1f ms\n", 1e3 * static_cast<double>(end - start) / CLOCKS_PER_SEC);
  const struct {
    const char* name;
    const char* unit;
  } cases[] = {{"letter", "a"},
               {"capital", "A"},
               {"space", " "},
               {"newline", "\n"},
               {"emoji", "\xF0\x9F\x98\x80"},
               {"cjk", "\xE4\xB8\xAD"},
               {"mark", "\xCC\x81"},
               {"digit", "7"},
               {"apostrophe", "'"},
               {"control", "\x01"},
               {"invalid", "\xFF"},
               {"space letter", " a"},
               {"space newline", " \n"},
               {"bos", "<s>"}};
  for (const auto& row : cases) {
    const double small = EncodeMilliseconds(**tokenizer, Repeat(row.unit, kSmallBytes));
    const double large = EncodeMilliseconds(**tokenizer, Repeat(row.unit, kLargeBytes));
    std::printf("%-14s 250 KB %8.2f ms   1 MB %8.2f ms   ratio %.2f\n", row.name, small, large,
                large / small);
  }
  // Runs that end in something else, so that look-ahead fails.
  const double small = EncodeMilliseconds(**tokenizer, Repeat(" ", kSmallBytes) + "x");
  const double large = EncodeMilliseconds(**tokenizer, Repeat(" ", kLargeBytes) + "x");
  std::printf("%-14s 250 KB %8.2f ms   1 MB %8.2f ms   ratio %.2f\n", "spaces, x", small, large,
              large / small);
  if (text_path != nullptr) {
    std::ifstream stream(text_path, std::ios::binary);
    std::stringstream text;
    text << stream.rdbuf();
    const double milliseconds = EncodeMilliseconds(**tokenizer, text.str());
    std::printf("%s: %.1f MB/s\n", text_path,
                static_cast<double>(text.str().size()) / 1e3 / milliseconds);
  }
  return 0;
}

}  // namespace
}  // namespace weft

int main(int argument_count, char** arguments) {
  if (argument_count < 2) {
    std::fprintf(stderr, "usage: %s MODEL.gguf [TEXT_FILE]\n", arguments[0]);
    return 2;
  }
  return weft::Run(arguments[1], argument_count > 2 ? arguments[2] : nullptr);
}
