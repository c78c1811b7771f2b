// Random inputs for the kernel checks, and the value of each weight by its formula.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/cpu/kernels/kernel_table.h"

namespace weft::cpu {

// A small generator of its own: the same numbers on every platform.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  // Uniform in [low, high].
  int64_t Int(int64_t low, int64_t high);
  double Uniform(double low, double high);
  // Symmetric, with a few values much larger than the others.
  float Activation();
  std::vector<float> Activations(int64_t n);

 private:
  uint64_t state_;
};

struct FormatInfo {
  const char* name;
  int elements;  // of a block
  int bytes;     // of a block
};
const FormatInfo& InfoOf(Format format);
inline bool IsFloatFormat(Format format) { return format <= kFormatBF16; }

// The value of element `index` of a row, by the formulas of spec H.4 in double precision.
double WeightAt(Format format, const uint8_t* row, int64_t index);

double HalfValue(uint16_t half);

// Rows of random blocks whose scales are finite; `extreme` draws scales from zero, denormals and
// the largest halves. Rows are `stride` bytes apart; the memory ends with the last row.
struct Rows {
  std::vector<uint8_t> bytes;
  int64_t first = 0;  // byte of the first row
  int64_t stride = 0;
  const uint8_t* row(int64_t i) const { return bytes.data() + first + i * stride; }
};
Rows RandomRows(Format format, int64_t k, int64_t count, bool extreme, Random& random);

// Prepared columns, 64-byte aligned.
struct Columns {
  std::unique_ptr<uint8_t[]> bytes;
  uint8_t* first = nullptr;
  int64_t stride = 0;
  const uint8_t* column(int64_t j) const { return first + j * stride; }
};
Columns PrepareColumns(const MatmulKernel& kernel, int64_t k, const std::vector<float>& x,
                       int64_t count);

// True if both arrays hold the same bits.
bool SameBits(const float* a, const float* b, int64_t n);

}  // namespace weft::cpu
