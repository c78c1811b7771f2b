// How far results may be from the oracle's, and why.
#pragma once

#include <cmath>
#include <vector>

#include "common/tensor/dtype.h"
#include "gmock/gmock.h"

namespace weft {

// |got - want| <= absolute + relative * |want| for each element, and the root mean square of all
// differences is at most `rms`.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  double rms = 1e300;
};

// Same values exactly; ops that only move data or round once.
inline constexpr Tolerance kExact = {};
// One or two F32 roundings, and functions approximated to a few units in the last place: 1e-6 is 8
// units. The absolute part is for results near a zero of the function.
inline constexpr Tolerance kFewRoundings = {2e-6, 1e-6};
// Sums along rows of some hundred elements near 1: roundings add up like a random walk.
inline constexpr Tolerance kRowSums = {1e-5, 1e-5};
// A page of F16 or Q8_0 is stored and read alike by both sides, so only the order of sums and the
// exponential differ.
inline constexpr Tolerance kAttention = {2e-5, 2e-5};

// A product over k elements of normal weights and normal columns: the sum is about sqrt(k).
inline Tolerance ProductTolerance(DType weights, int64_t k) {
  const double size = std::sqrt(static_cast<double>(k < 1 ? 1 : k));
  // Only the order of F32 sums.
  if (!GetDTypeInfo(weights).quantized) return {1e-5, 1e-5 * size};
  // Columns are rounded to 8 bits, in steps of max / 127 for each 32: the error of an element is
  // max / 254 / sqrt(3) = 0.006 of a normal value, and at most max / 254 < 0.02.
  return {0, 0.05 * size, 0.012 * size};
}

// got within `tolerance` of `want`.
MATCHER_P2(IsNear, want, tolerance, "") {
  if (arg.size() != want.size()) {
    *result_listener << arg.size() << " elements, want " << want.size();
    return false;
  }
  double squares = 0;
  for (size_t i = 0; i < arg.size(); ++i) {
    const double expected = want[i];
    const double got = arg[i];
    if (got == expected || (std::isnan(got) && std::isnan(expected))) continue;
    const double difference = std::abs(got - expected);
    if (!(difference <= tolerance.absolute + tolerance.relative * std::abs(expected))) {
      *result_listener << "element " << i << " is " << got << ", want " << expected;
      return false;
    }
    squares += difference * difference;
  }
  const double rms = arg.empty() ? 0 : std::sqrt(squares / static_cast<double>(arg.size()));
  if (rms <= tolerance.rms) return true;
  *result_listener << "root mean square of differences is " << rms << ", allowed " << tolerance.rms;
  return false;
}

}  // namespace weft
