#include "coordinator/chat/jinja/attribute_path.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/attributes.h"
#include "coordinator/chat/jinja/operations.h"

namespace weft::jinja {

absl::StatusOr<Value> AttributeAt(Runtime& runtime, const Value& item, const Value& path) {
  if (path.Is(Kind::kUndefined) || path.Is(Kind::kNone)) return item;
  if (!path.Is(Kind::kString)) return SubscriptOf(runtime, item, path);
  Value value = item;
  std::string_view rest = path.AsString();
  while (true) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool is_number = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
      return c >= '0' && c <= '9';
    });
    const auto number = is_number ? ParseInteger(part, 10) : std::nullopt;
    const Value key =
        number.has_value() ? Value::Integer(*number) : runtime.String(std::string(part));
    ASSIGN_OR_RETURN(value, SubscriptOf(runtime, value, key));
    if (dot == std::string_view::npos) return value;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace weft::jinja
