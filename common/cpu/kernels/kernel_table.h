/* The inner loops of the CPU device as a table of function pointers, one table per instruction set,
 * chosen at start.
 *
 * Every instruction set compiles the same bodies into its own namespace. Sources in this folder
 * include no C++ library header: an inline standard-library function compiled with AVX-512 flags
 * could be the copy that the linker keeps for the whole program.
 *
 * Determinism (decision 20): the value of one output element depends only on its own inputs and on
 * k, never on how many rows or columns a call has, on alignment, or on which thread makes it. So a
 * kernel may tile rows and columns as it likes, but sums each element in one fixed order. */
#pragma once

#include <stdint.h>

namespace weft {
namespace cpu {

/* Weight formats of the matrix product, in the order of KernelTable::matmul. */
enum Format {
  kFormatF32,
  kFormatF16,
  kFormatBF16,
  kFormatQ4_0,
  kFormatQ4_1,
  kFormatQ5_0,
  kFormatQ5_1,
  kFormatQ8_0,
  kFormatQ2_K,
  kFormatQ3_K,
  kFormatQ4_K,
  kFormatQ5_K,
  kFormatQ6_K,
  kFormatIQ4_NL,
  kFormatIQ4_XS,
  kFormatMXFP4,
  kFormatCount
};

/* Product of weight rows with activation columns. Activations are prepared once per column (for
 * quantised formats: rounded to 8 bits in blocks of 32 with an F32 scale; for F32, F16 and BF16:
 * kept in F32). */
struct MatmulKernel {
  /* Bytes of one prepared column of k elements; a multiple of 64. k is a multiple of the format's
   * block. */
  int64_t (*column_bytes)(int64_t k);
  /* Prepares x[0..k) into `column` (64-byte aligned). */
  void (*prepare_column)(int64_t k, const float* x, void* column);
  /* out[j * out_stride + i] = dot(row i, column j) for i < row_count, j < column_count. Strides of
   * rows and columns are in bytes, out_stride in floats. Rows have the alignment of their format
   * only (quantised blocks: none). */
  void (*multiply)(int64_t k, const void* rows, int64_t row_stride, int64_t row_count,
                   const void* columns, int64_t column_stride, int64_t column_count, float* out,
                   int64_t out_stride);
};

/* Conversions and attention pieces of a format that rows of a table or of a KV page may have. */
struct RowKernel {
  /* Expands n elements (whole blocks); bit for bit as the reference codec. */
  void (*to_float)(int64_t n, const void* row, float* values);
  /* Rounds n elements; bit for bit as the reference codec. Null where the format is never written
   * (K and IQ types). */
  void (*from_float)(int64_t n, const float* values, void* row);
  /* scores[i] = dot(q, row i) over n elements for i < count, q in F32. Null for formats that KV
   * pages do not use. */
  void (*scores)(int64_t n, const float* q, const void* rows, int64_t row_stride, int64_t count,
                 float* scores);
  /* out[e] += sum over i < count, in order of i, of p[i] * row i [e]. Null as above. */
  void (*accumulate)(int64_t n, const float* p, const void* rows, int64_t row_stride, int64_t count,
                     float* out);
};

/* Unary functions, in the order of KernelTable::unary (spec G.0). Must match weft::UnaryKind. */
enum UnaryFunction {
  kUnarySilu,
  kUnaryGelu, /* tanh form */
  kUnaryGeluErf,
  kUnaryGeluQuick, /* x * sigmoid(1.702 x) */
  kUnarySigmoid,
  kUnaryTanh,
  kUnaryExp,
  kUnaryNeg,
  kUnaryRelu,
  kUnarySoftplus,
  kUnarySqr,
  kUnarySqrt,
  kUnaryLog,
  kUnarySin,
  kUnaryCos,
  kUnaryFunctionCount
};

struct KernelTable {
  const char* name; /* "scalar", "avx2", "avx512", "neon" */
  MatmulKernel matmul[kFormatCount];
  RowKernel row[kFormatCount];
  void (*unary[kUnaryFunctionCount])(int64_t n, const float* x, float* y); /* y may be x */

  /* y may be a or b in all of these. */
  void (*add)(int64_t n, const float* a, const float* b, float* y);
  void (*sub)(int64_t n, const float* a, const float* b, float* y);
  void (*mul)(int64_t n, const float* a, const float* b, float* y);
  void (*div)(int64_t n, const float* a, const float* b, float* y);
  void (*scale)(int64_t n, const float* x, float factor, float bias,
                float* y); /* y = x * factor + bias */
  void (*clamp)(int64_t n, const float* x, float low, float high, float* y);
  /* y += x * factor, as two roundings. */
  void (*scale_add)(int64_t n, const float* x, float factor, float* y);

  /* Gated units: y = silu(gate) * up and so on. */
  void (*swiglu)(int64_t n, const float* gate, const float* up, float* y);
  void (*geglu)(int64_t n, const float* gate, const float* up, float* y);
  void (*reglu)(int64_t n, const float* gate, const float* up, float* y);
  void (*swiglu_oai)(int64_t n, const float* gate, const float* up, float alpha, float limit,
                     float* y);

  /* y = x / sqrt(mean(x^2) + epsilon) * weight; weight may be null (1). Mean in double precision.
   */
  void (*rms_norm)(int64_t n, const float* x, const float* weight, float epsilon, float* y);
  float (*max)(int64_t n, const float* x); /* -infinity for n = 0 */
  float (*dot)(int64_t n, const float* a, const float* b);
  /* y[i] = exp(x[i] - maximum), returns their sum. exp(-infinity) is exactly 0. */
  float (*exp_sum)(int64_t n, const float* x, float maximum, float* y);

  /* Rotates pairs by cos[i] and sin[i] (magnitude included), i < pairs; other elements are the
   * caller's to copy. Adjacent: pair i is (2i, 2i+1). Half: pair i is (i, i + pairs). y may be x.
   */
  void (*rope_adjacent)(int64_t pairs, const float* x, const float* cosine, const float* sine,
                        float* y);
  void (*rope_half)(int64_t pairs, const float* x, const float* cosine, const float* sine,
                    float* y);
};

/* The table of each instruction set, or null where this build does not have it. Call only what the
 * processor supports (common/base/cpu_features.h). */
const KernelTable* ScalarKernels();
const KernelTable* Avx2Kernels();
const KernelTable* Avx512Kernels();
const KernelTable* NeonKernels();

}  // namespace cpu
}  // namespace weft
