// The parameter `attribute` of filters: "function.name", "0.role" or an index.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/runtime.h"

namespace weft::jinja {

// Follows `path` from `item`; undefined and None lead nowhere and give the item.
absl::StatusOr<Value> AttributeAt(Runtime& runtime, const Value& item, const Value& path);

}  // namespace weft::jinja
