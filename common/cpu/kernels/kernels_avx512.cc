/* The kernels compiled for avx512. */
#define WEFT_ISA avx512
#define WEFT_ISA_NAME "avx512"

/* clang-format off */
#include "common/cpu/kernels/simd_avx512.h"
#include "common/cpu/kernels/panel_avx512.h"
#include "common/cpu/kernels/bodies.inc"
/* clang-format on */
