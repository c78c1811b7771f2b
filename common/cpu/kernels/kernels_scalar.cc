/* The kernels compiled for scalar. */
#ifndef WEFT_KERNELS_SMALL
#define WEFT_KERNELS_SMALL
#endif
#define WEFT_ISA scalar
#define WEFT_ISA_NAME "scalar"

/* clang-format off */
#include "common/cpu/kernels/simd_scalar.h"
#include "common/cpu/kernels/panel_scalar.h"
#include "common/cpu/kernels/bodies.inc"
/* clang-format on */
