// Filling values into a pattern.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/arguments.h"
#include "coordinator/chat/jinja/runtime.h"

namespace weft::jinja {

// pattern % values: conversions s r a d i u x X o c e E f F g G %, with flags, width, precision and
// names of a dict. `values` is a tuple, a dict or one value.
absl::StatusOr<Value> FormatPercent(Runtime& runtime, std::string_view pattern,
                                    const Value& values);

// pattern.format(...): {}, {0}, {name}, {{ and }}, with [index] or .key behind; no format after a
// colon but the empty one.
absl::StatusOr<Value> FormatBraces(Runtime& runtime, std::string_view pattern,
                                   const Arguments& arguments);

}  // namespace weft::jinja
