// object.name: the methods of texts, lists, dicts and loops, the keys of dicts.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/runtime.h"
#include "coordinator/chat/jinja/value.h"

namespace weft::jinja {

// object.name: a method goes before a key. Undefined where there is neither, or where it would
// change the object. Error: the object is undefined.
absl::StatusOr<Value> AttributeOf(Runtime& runtime, const Value& object, std::string_view name);

// object[index]: a key or position goes before a method.
absl::StatusOr<Value> SubscriptOf(Runtime& runtime, const Value& object, const Value& index);

// The method of a kind of value, bound to it; nothing if there is none of that name.
std::optional<Value> StringMethod(Runtime& runtime, const Value& object, std::string_view name);
std::optional<Value> ContainerMethod(Runtime& runtime, const Value& object, std::string_view name);
std::optional<Value> LoopAttribute(Runtime& runtime, const Value& loop, std::string_view name);

struct MethodRow {
  std::string_view name;
  NativeFunction function;  // null: known in Python, refused here because it changes the object
};

}  // namespace weft::jinja
