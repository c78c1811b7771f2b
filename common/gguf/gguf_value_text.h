// Values of GGUF metadata as text for messages and listings.
#pragma once

#include <cstddef>
#include <string>

#include "common/gguf/gguf_metadata.h"

namespace weft {

struct GgufTextLimits {
  size_t string_bytes = 80;   // of each string; what is longer ends in "..."
  size_t array_elements = 8;  // of an array; what is longer ends in ", ... 32000 in all"
};

// One line without control characters: numbers as they are, strings in single quotes with what is
// not printable escaped, arrays in brackets. Floating-point numbers have as many digits as it takes
// to read the same number back.
std::string GgufValueText(const GgufValue& value, const GgufTextLimits& limits);

}  // namespace weft
