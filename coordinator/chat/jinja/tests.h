// What stands behind `is`.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/chat/jinja/arguments.h"
#include "coordinator/chat/jinja/runtime.h"

namespace weft::jinja {

using TestFunction = absl::StatusOr<bool> (*)(Runtime&, const Value&, const Arguments&);

// The test of that name, or null.
TestFunction FindTest(std::string_view name);

// Error: no test has that name.
absl::StatusOr<bool> ApplyTest(Runtime& runtime, std::string_view name, const Value& value,
                               const Arguments& arguments);

}  // namespace weft::jinja
