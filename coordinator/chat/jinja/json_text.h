// JSON in and out of values.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/runtime.h"
#include "coordinator/chat/jinja/value.h"
#include "nlohmann/json.hpp"

namespace weft::jinja {

// What json.dumps takes. Without `separators` they are ", " and ": ", or "," before a new line.
struct JsonLayout {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool has_indent = false;
  std::string indent;  // of one level
  bool has_separators = false;
  std::string item_separator;
  std::string key_separator;
};

// The bytes of Python's json.dumps. Errors: what JSON cannot say (undefined, namespaces, views of
// dicts, keys that are no plain values).
absl::StatusOr<std::string> ToJson(Runtime& runtime, const Value& value, const JsonLayout& layout);

// The value of parsed JSON, objects in their order. Integers beyond 64 bits become floats.
// Errors: texts that are not UTF-8; more than the limits allow.
absl::StatusOr<Value> FromJson(Runtime& runtime, const nlohmann::ordered_json& json);

}  // namespace weft::jinja
