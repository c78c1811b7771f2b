// How much memory this machine has.
#pragma once

#include <cstdint>

namespace weft {

// Bytes, whatever part of them this process may use; 0: the system does not say.
int64_t MachineMemoryBytes();

}  // namespace weft
