/* The kernels compiled for scalar. */
#define WEFT_ISA scalar
#define WEFT_ISA_NAME "scalar"

/* clang-format off */
#include "common/cpu/kernels/simd_scalar.h"
#include "common/cpu/kernels/panel_scalar.h"
#include "common/cpu/kernels/bodies.inc"
/* clang-format on */
