// Random weights as they lie in memory: valid blocks of a type, written directly instead of by
// quantising numbers, which makes gigabytes a second. The values have mean zero and a given
// standard deviation.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/random.h"
#include "common/tensor/dtype.h"

namespace weft {

class RandomBlocks {
 public:
  // Errors: INVALID_ARGUMENT unless 5e-4 <= deviation <= 100, beyond which the F16 scales of some
  // type lose too many digits; UNIMPLEMENTED if the type has no codec.
  static absl::StatusOr<RandomBlocks> Create(DType dtype, double deviation);

  // Fills `bytes`, whole blocks of the type. Equal generators give equal bytes.
  void Fill(Random& random, absl::Span<uint8_t> bytes) const;

 private:
  // A scale and, where the format has one, the offset that centres its codes.
  struct Scale {
    uint16_t d = 0;
    uint16_t offset = 0;
  };

  RandomBlocks() = default;

  DType dtype_ = DType::kF32;
  double deviation_ = 0;
  // Blocks draw from these, so that their scales differ as those of real weights do.
  std::array<Scale, 256> scales_;
  uint8_t exponent_ = 0;           // MXFP4: the smaller of two neighbouring exponents
  uint32_t larger_exponents_ = 0;  // how many of 2^16 blocks take the larger one
};

}  // namespace weft
