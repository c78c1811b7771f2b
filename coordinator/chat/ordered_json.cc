#include "coordinator/chat/ordered_json.h"

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

// Whether no more brackets are open at one time than allowed, outside of strings.
bool IsShallow(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
      continue;
    }
    in_string = c == '"';
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > kMaxJsonDepth) return false;
  }
  return true;
}

void AppendLine(const OrderedJson& json, int depth, std::string* out) {
  const bool is_container = json.is_object() || json.is_array();
  if (!is_container || depth > kMaxJsonDepth) {
    out->append(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
    return;
  }
  out->push_back(json.is_object() ? '{' : '[');
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    if (!first) out->append(", ");
    first = false;
    if (json.is_object())
      absl::StrAppend(
          out, OrderedJson(key).dump(-1, ' ', false, OrderedJson::error_handler_t::replace), ": ");
    AppendLine(value, depth + 1, out);
  }
  out->push_back(json.is_object() ? '}' : ']');
}

}  // namespace

std::optional<OrderedJson> ParseOrderedJson(std::string_view text) {
  if (text.size() > kMaxJsonBytes || !IsShallow(text)) return std::nullopt;
  OrderedJson json = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

std::string JsonLine(const OrderedJson& json) {
  std::string out;
  AppendLine(json, 0, &out);
  return out;
}

}  // namespace weft
