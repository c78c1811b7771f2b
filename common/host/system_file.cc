#include "common/host/system_file.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "common/base/absl_view.h"
#include "common/base/small_file.h"

namespace weft {
namespace {

// The files are a few lines; more is none of them.
constexpr size_t kMostFileBytes = 64 << 10;

}  // namespace

std::string ReadSystemFile(const std::string& path) {
  return ReadSmallFile(path, kMostFileBytes).value_or("");
}

int64_t NumberIn(std::string_view text) {
  int64_t value = -1;
  return absl::SimpleAtoi(absl::StripAsciiWhitespace(AbslView(text)), &value) ? value : -1;
}

}  // namespace weft
