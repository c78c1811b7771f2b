// Sorting of values, with errors where Python has them.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/runtime.h"

namespace weft::jinja {

// A text in small letters unless `case_sensitive`; anything else as it is.
Value FoldCase(Runtime& runtime, const Value& value, bool case_sensitive);

// What sort(attribute=...) compares: `attribute` may name several, "role,name".
absl::StatusOr<Value> SortKey(Runtime& runtime, const Value& item, const Value& attribute,
                              bool case_sensitive);

// The positions of `keys` in ascending (or, `reverse`, descending) order; equal ones stay in
// theirs. Error: two of them have no order.
absl::StatusOr<std::vector<size_t>> SortedOrder(Runtime& runtime, const std::vector<Value>& keys,
                                                bool reverse);

}  // namespace weft::jinja
