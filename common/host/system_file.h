// Files in which the kernel tells about itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

// At most 64 KiB of it; empty where it cannot be read.
std::string ReadSystemFile(const std::string& path);

// The number that a text is, but for spaces around it; -1: none.
int64_t NumberIn(std::string_view text);

}  // namespace weft
