/* The kernels compiled for NEON with the dot-product extension. */
#define WEFT_ISA neon_dotprod
#define WEFT_ISA_NAME "neon"

/* clang-format off */
#include "common/cpu/kernels/simd_neon.h"
#include "common/cpu/kernels/panel_neon.h"
#include "common/cpu/kernels/bodies.inc"
/* clang-format on */
