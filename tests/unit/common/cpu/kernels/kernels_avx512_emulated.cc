// The AVX-512 kernels over SIMDe, so that they are tested where the processor lacks AVX-512.
#ifndef WEFT_KERNELS_SMALL
#define WEFT_KERNELS_SMALL
#endif
#define WEFT_AVX512_INTRINSICS
#define WEFT_ISA avx512_emulated
#define WEFT_ISA_NAME "avx512_emulated"

/* clang-format off */
#include "tests/unit/common/cpu/kernels/simde_avx512.h"
#include "common/cpu/kernels/simd_avx512.h"
#include "common/cpu/kernels/panel_avx512.h"
#include "common/cpu/kernels/bodies.inc"
/* clang-format on */
