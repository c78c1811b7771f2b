// The value of one element of a block, written down a second time from spec H.4: by element number,
// from raw bytes, with no code of the codec. Slow and plain on purpose.
#pragma once

#include <cstdint>

#include "common/tensor/dtype.h"

namespace weft {

// Element `index` of the block of `dtype` at `block`.
float FormulaValue(DType dtype, const uint8_t* block, int index);

}  // namespace weft
