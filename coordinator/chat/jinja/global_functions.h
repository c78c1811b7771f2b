// Functions that every template can call: range, dict, namespace, raise_exception, strftime_now,
// joiner and cycler.
#pragma once

#include <optional>
#include <string_view>

#include "coordinator/chat/jinja/runtime.h"
#include "coordinator/chat/jinja/value.h"

namespace weft::jinja {

// The function of that name, or nothing.
std::optional<Value> GlobalFunction(Runtime& runtime, std::string_view name);

}  // namespace weft::jinja
