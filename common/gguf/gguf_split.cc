#include "common/gguf/gguf_split.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "common/base/absl_view.h"

namespace weft {

std::string GgufSplitPath(std::string_view prefix, int64_t number, int64_t count) {
  return absl::StrFormat("%s-%05d-of-%05d.gguf", AbslView(prefix), number + 1, count);
}

std::optional<GgufSplitName> ParseGgufSplitPath(std::string_view path) {
  // Taken apart by position; composing it again tells whether it was such a name.
  constexpr size_t kDigits = 5;
  constexpr size_t kSuffixLength = std::string_view("-00001-of-00003.gguf").size();
  if (path.size() < kSuffixLength) return std::nullopt;
  const std::string_view suffix = path.substr(path.size() - kSuffixLength);
  GgufSplitName name;
  int64_t number = 0;
  if (!absl::SimpleAtoi(AbslView(suffix.substr(1, kDigits)), &number) ||
      !absl::SimpleAtoi(AbslView(suffix.substr(1 + kDigits + 4, kDigits)), &name.count)) {
    return std::nullopt;
  }
  name.prefix = std::string(path.substr(0, path.size() - kSuffixLength));
  name.number = number - 1;
  if (number < 1 || GgufSplitPath(name.prefix, name.number, name.count) != path) {
    return std::nullopt;
  }
  return name;
}

}  // namespace weft
