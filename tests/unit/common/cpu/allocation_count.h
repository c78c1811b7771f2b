// How often this program has called operator new; the program replaces it (allocation_count.cc).
#pragma once

#include <cstdint>

namespace weft {

int64_t AllocationCount();

}  // namespace weft
