#include "common/host/system_file.h"

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "common/base/absl_view.h"

namespace weft {
namespace {

// The files are a few lines; more is none of them.
constexpr size_t kMostFileBytes = 64 << 10;

}  // namespace

std::string ReadSystemFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostFileBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

int64_t NumberIn(std::string_view text) {
  int64_t value = -1;
  return absl::SimpleAtoi(absl::StripAsciiWhitespace(AbslView(text)), &value) ? value : -1;
}

}  // namespace weft
