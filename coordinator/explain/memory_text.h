// Sizes for people.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// "512 B", "1.25 GiB".
std::string MemoryText(int64_t bytes);

}  // namespace weft
