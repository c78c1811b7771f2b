/* The kernels compiled for avx2. */
#define WEFT_ISA avx2
#define WEFT_ISA_NAME "avx2"

/* clang-format off */
#include "common/cpu/kernels/simd_avx2.h"
#include "common/cpu/kernels/panel_avx2.h"
#include "common/cpu/kernels/bodies.inc"
/* clang-format on */
