// The angles of rotary embedding, shared by the oracle and the CPU device.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/graph/op_attributes.h"

namespace weft {

// What of the angles does not depend on the position: the angle of pair i at position p is
// p * factor(i), and the rotated pair is multiplied by magnitude(). In double precision.
// Source: spec G.1; YaRN: Peng et al. 2023, arXiv:2309.00071.
class RopeAngles {
 public:
  // The attributes are legal for the op. `factors` is empty or has dimensions / 2 elements.
  explicit RopeAngles(const RopeAttributes& attributes) : attributes_(attributes) {}

  // Radians per position of pair i, where `divisor` is the pair's frequency factor (1 if none).
  double Frequency(int64_t pair, double divisor) const;
  double magnitude() const;
  // Which of the four positions of a token turns pair i; 0 for kinds with one position.
  int PositionIndex(int64_t pair) const;

 private:
  // The pair where `beta` full turns fit into the original context.
  double Correction(double beta) const;

  RopeAttributes attributes_;
};

}  // namespace weft
