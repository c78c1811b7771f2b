// Loops that do nothing but arithmetic in registers, or nothing but reading; each returns what it
// did.
#pragma once

#include <cstdint>

#include "common/base/cpu_features.h"

namespace weft {

// Operations done in `steps` rounds of 8-bit multiply-adds. `sink` keeps the result alive.
int64_t Int8Loop(InstructionSet isa, int64_t steps, int64_t* sink);
// The same in single precision.
int64_t F32Loop(InstructionSet isa, int64_t steps, int64_t* sink);
// Reads [data, data + bytes), bytes a multiple of 64.
int64_t ReadLoop(const uint8_t* data, int64_t bytes, int64_t* sink);

}  // namespace weft
