#include "common/gguf/gguf_value_text.h"

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/base/escaped_text.h"

namespace weft {
namespace {

template <typename T>
std::string ElementText(const T& value, const GgufTextLimits& limits) {
  if constexpr (std::is_same_v<T, std::string>) {
    return absl::StrCat("'", EscapedText(value, limits.string_bytes), "'");
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_floating_point_v<T>) {
    char digits[64];
    const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), value);
    return std::string(digits, end.ptr);
  } else {
    return absl::StrCat(value);
  }
}

template <typename T>
std::string ArrayText(const std::vector<T>& elements, const GgufTextLimits& limits) {
  const size_t shown = std::min(elements.size(), limits.array_elements);
  std::string text = "[";
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", ElementText<T>(elements[i], limits));
  }
  if (shown < elements.size()) {
    absl::StrAppend(&text, shown == 0 ? "" : ", ", "... ", elements.size(), " in all");
  }
  return text + "]";
}

}  // namespace

std::string GgufValueText(const GgufValue& value, const GgufTextLimits& limits) {
  return std::visit(
      [&](const auto& held) -> std::string {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, GgufArray>) {
          return std::visit([&](const auto& elements) { return ArrayText(elements, limits); },
                            held);
        } else {
          return ElementText<T>(held, limits);
        }
      },
      value);
}

}  // namespace weft
