// Outside text made fit to print in one line of a message or terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

// `text` with control characters and bytes that are not UTF-8 as \n, \t, \r, \\ or \xNN, cut after
// at most `max_bytes` of it with "..." appended. The result is valid UTF-8 without control
// characters (C0, DEL, C1).
std::string EscapedText(std::string_view text, size_t max_bytes);

}  // namespace weft
