// Text for people, as it crosses the wire: one line of UTF-8 without control characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

bool IsCleanText(std::string_view text);

// `text` itself where it is clean and short enough; else escaped (EscapedText) or cut, so that it
// has at most `max_bytes`, which is 8 or more.
std::string CleanText(std::string_view text, int64_t max_bytes);

}  // namespace weft
