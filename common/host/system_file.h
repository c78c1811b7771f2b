// Files in which the kernel tells about itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

// Empty where it cannot be read or is longer than 64 KiB.
std::string ReadSystemFile(const std::string& path);

// The number that a text is, but for spaces around it; -1: none.
int64_t NumberIn(std::string_view text);

}  // namespace weft
