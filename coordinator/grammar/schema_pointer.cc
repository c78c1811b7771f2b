#include "coordinator/grammar/schema_pointer.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/absl_view.h"

namespace weft {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Unescape(std::string_view step) {
  std::string text;
  for (size_t i = 0; i < step.size(); ++i) {
    const bool coded = step[i] == '%' && i + 2 < step.size() && HexDigit(step[i + 1]) >= 0 &&
                       HexDigit(step[i + 2]) >= 0;
    text += coded ? static_cast<char>(HexDigit(step[i + 1]) * 16 + HexDigit(step[i + 2])) : step[i];
    if (coded) i += 2;
  }
  return absl::StrReplaceAll(absl::StrReplaceAll(text, {{"~1", "/"}}), {{"~0", "~"}});
}

}  // namespace

absl::StatusOr<const Json*> ResolvePointer(const Json& document, std::string_view reference) {
  const auto bad = [&](const char* why) {
    return absl::InvalidArgumentError(
        absl::StrCat("$ref '", AbslView(reference.substr(0, 200)), "' ", why));
  };
  if (reference == "#") return &document;
  if (reference.substr(0, 2) != "#/") return bad("leads out of the document");
  const Json* at = &document;
  for (const absl::string_view part : absl::StrSplit(AbslView(reference.substr(2)), '/')) {
    const std::string step = Unescape(StdView(part));
    int64_t index = 0;
    if (at->is_object() && at->contains(step)) {
      at = &(*at)[step];
    } else if (at->is_array() && absl::SimpleAtoi(step, &index) && index >= 0 &&
               index < static_cast<int64_t>(at->size())) {
      at = &(*at)[static_cast<size_t>(index)];
    } else {
      return bad("leads nowhere");
    }
  }
  return at;
}

bool HasType(const Json& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  if (type != "integer" || !value.is_number()) return false;
  return value.is_number_integer() || std::floor(value.get<double>()) == value.get<double>();
}

}  // namespace weft
