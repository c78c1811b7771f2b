#include "coordinator/chat/json_line.h"

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

void AppendLine(const Json& json, int depth, std::string* out) {
  const bool is_container = json.is_object() || json.is_array();
  if (!is_container || depth > JsonLimits().depth) {
    out->append(json.dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  out->push_back(json.is_object() ? '{' : '[');
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    if (!first) out->append(", ");
    first = false;
    if (json.is_object())
      absl::StrAppend(out, Json(key).dump(-1, ' ', false, Json::error_handler_t::replace), ": ");
    AppendLine(value, depth + 1, out);
  }
  out->push_back(json.is_object() ? '}' : ']');
}

}  // namespace

std::string JsonLine(const Json& json) {
  std::string out;
  AppendLine(json, 0, &out);
  return out;
}

}  // namespace weft
