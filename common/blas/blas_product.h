// One matrix product by BLAS: in tiles, F16 and BF16 weights expanded a panel of rows at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "common/blas/blas_library.h"
#include "common/cpu/kernels/kernel_table.h"
#include "common/tensor/tensor_layout.h"

namespace weft {

// a [k, m, a2, a3] in F32, F16 or BF16, b [k, n, b2, b3] and c [m, n, b2, b3] in F32, all packed; a
// repeats over the batches of b by division (spec 0.2). All extents fit into int32.
struct BlasOperands {
  TensorLayout a_layout, b_layout;
  const uint8_t* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
};

// What a launch lends to its products.
struct BlasLaunch {
  BlasLibrary& library;
  const cpu::KernelTable& kernels;
  int threads = 1;
  float* workspace = nullptr;             // BlasWorkspaceBytes of the product
  const std::function<void()>& progress;  // may be empty; else called about every millisecond
};

// Largest panel of expanded weights: few calls for a wide matrix, and still in the last cache.
inline constexpr int64_t kBlasPanelBytes = int64_t{4} << 20;

// Scratch memory for weights of that layout; 0 for F32, which is read where it lies.
int64_t BlasWorkspaceBytes(const TensorLayout& weights);

void RunBlasProduct(const BlasOperands& operands, const BlasLaunch& launch);

}  // namespace weft
