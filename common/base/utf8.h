// Whether bytes are well-formed UTF-8. What is not is the caller's business; nothing is decoded
// here.
#pragma once

#include <cstddef>
#include <string_view>

namespace weft {

// Bytes of the well-formed UTF-8 sequence that `text` starts with: 1 to 4; 0 if it starts with none
// (also if empty). Overlong forms, surrogates and code points above U+10FFFF are not well-formed.
// Source: Unicode 15, table 3-7.
size_t Utf8SequenceLength(std::string_view text);

// True if all of `text` is well-formed.
bool IsUtf8(std::string_view text);

}  // namespace weft
