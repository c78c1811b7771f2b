// How values look as text: Python's str() and repr().
#pragma once

#include <string>
#include <string_view>

#include "coordinator/chat/jinja/runtime.h"
#include "coordinator/chat/jinja/value.h"

namespace weft::jinja {

// str(value), as {{ value }} prints it. Empty, with the runtime exhausted, where the text would
// take more memory than there is.
std::string ToText(Runtime& runtime, const Value& value);
// repr(value), as elements of lists are printed.
std::string ToRepr(Runtime& runtime, const Value& value);

// The shortest decimal that reads back as `value`, in Python's layout: 1.0, 1e+16, inf, nan.
std::string FloatText(double value);

// `value` in quotes with escapes, as repr() of a text.
std::string QuotedText(std::string_view text);

}  // namespace weft::jinja
