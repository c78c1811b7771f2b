// Checks of a kernel table against formulas in double precision. Standard library only, so that the
// same checks run under an emulator in a program without other dependencies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/cpu/kernels/kernel_table.h"

namespace weft::cpu {

// One property of a table. `run` returns what is wrong, or an empty text.
struct KernelCheck {
  const char* name;
  std::string (*run)(const KernelTable& table, uint64_t seed);
};

// Matrix products, attention pieces and conversions of rows.
std::vector<KernelCheck> RowChecks();

// Everything that works on F32 vectors.
std::vector<KernelCheck> VectorChecks();

// That two tables give the same bits for the same matrix products, attention pieces, exponentials
// and rotations: every instruction set sums in the same order.
std::string CheckSameBits(const KernelTable& a, const KernelTable& b, uint64_t seed);

}  // namespace weft::cpu
