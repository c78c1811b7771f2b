// How many threads of this process can run at once.
#pragma once

#include <cstdint>

namespace weft {

// Processors that this process may use; at least 1.
int32_t AvailableProcessors();

}  // namespace weft
