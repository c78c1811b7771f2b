// Searches for scales that make the squared error of a block of 256 small: first the best scale of
// each sub-block alone, then the scale of scales d, then single steps of the quantised scales and a
// least squares fit of d in turns, until nothing gets better. Our own procedure; spec H.5 leaves it
// open.
//
// Two families: signed (x = d * scale * code, codes on both sides of zero) and affine (x = d *
// scale * code - dmin * minimum, codes from zero). Inputs are finite and at most kLargestInput in
// magnitude, so that no sum overflows.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "common/tensor/quant/block_codec.h"
#include "common/tensor/quant/reference_codec.h"

namespace weft {

inline constexpr float kLargestInput = 1e15f;

// Below this magnitude every value rounds to zero, as the smallest half is 6e-8.
inline constexpr float kNegligible = 1e-9f;

// Nearest integer for |value| < 2^22, ties to even.
inline float NearestInteger(float value) { return (value + 12582912.0f) - 12582912.0f; }

inline int ClampedInteger(float value, int low, int high) {
  return static_cast<int>(
      NearestInteger(std::clamp(value, static_cast<float>(low), static_cast<float>(high))));
}

// To half; a scale too small for it becomes the smallest half of its sign instead of zero, which
// loses less.
inline uint16_t ScaleToHalf(float scale) {
  const uint16_t bits = FloatToHalf(scale);
  return (bits & 0x7FFF) == 0 && scale != 0.0f ? static_cast<uint16_t>(bits | 1) : bits;
}

// Whole codes from kLow to kHigh.
template <int kLow, int kHigh>
struct WholeCodes {
  static constexpr float kLowest = kLow;
  static constexpr float kHighest = kHigh;
  static float Nearest(float value) {
    return NearestInteger(std::min(std::max(value, kLowest), kHighest));
  }
};

// ---- Signed
// -----------------------------------------------------------------------------------------------------

// Sums over a sub-block with the codes nearest to x / scale.
struct SignedSums {
  float xq = 0;
  float qq = 0;
};

template <typename Codes, int kCount>
SignedSums SumSigned(const float* x, float inverse) {
  SignedSums sums;
  for (int i = 0; i < kCount; ++i) {
    const float q = Codes::Nearest(x[i] * inverse);
    sums.xq += x[i] * q;
    sums.qq += q * q;
  }
  return sums;
}

// Squared error of a sub-block under `scale`.
template <typename Codes, int kCount>
float SignedError(const float* x, float scale) {
  const float inverse = InverseOrZero(scale);
  float error = 0;
  for (int i = 0; i < kCount; ++i) {
    const float difference = x[i] - scale * Codes::Nearest(x[i] * inverse);
    error += difference * difference;
  }
  return error;
}

// How many and which scales a search tries: those that put the extreme value at first + i * step
// times a bound of the codes.
struct Tries {
  float first;
  float step;
  int count;
};

// The scale of least squared error that the tries and a fit to their codes find; zero for a
// negligible sub-block.
template <typename Codes, int kCount>
float BestSignedScale(const float* x, const Tries& tries) {
  float extreme = 0;
  for (int i = 0; i < kCount; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  if (std::fabs(extreme) < kNegligible) return 0.0f;
  float best_gain = 0;  // by how much the squared error is below the sum of squares
  float best_scale = 0;
  const auto consider = [&](float inverse) {
    const SignedSums sums = SumSigned<Codes, kCount>(x, inverse);
    if (sums.qq <= 0.0f || sums.xq * sums.xq <= best_gain * sums.qq) return;
    best_gain = sums.xq * sums.xq / sums.qq;
    best_scale = sums.xq / sums.qq;
  };
  for (int i = 0; i < tries.count; ++i) {
    const float factor = tries.first + static_cast<float>(i) * tries.step;
    consider(Codes::kLowest * factor / extreme);
    consider(Codes::kHighest * factor / extreme);
  }
  for (int round = 0; round < 2; ++round) consider(InverseOrZero(best_scale));
  return best_scale;
}

template <int kSubBlocks>
struct SignedScales {
  uint16_t d = 0;                        // half
  std::array<int, kSubBlocks> scales{};  // all zero where d is zero or not finite
};

// Moves each scale by at most one step where that lowers the error; returns the error of the block.
template <typename Codes, int kSubBlocks, int kCount>
float ImproveSigned(const float* x, int low, int high, float d,
                    std::array<int, kSubBlocks>& scales) {
  float total = 0;
  for (int i = 0; i < kSubBlocks; ++i) {
    float best = std::numeric_limits<float>::infinity();
    const int centre = scales[i];
    for (int scale = std::max(centre - 1, low); scale <= std::min(centre + 1, high); ++scale) {
      const float error = SignedError<Codes, kCount>(x + i * kCount, d * static_cast<float>(scale));
      if (error < best) {
        best = error;
        scales[i] = scale;
      }
    }
    total += best;
  }
  return total;
}

// The d of least squared error for the codes that `d` and `scales` choose.
template <typename Codes, int kSubBlocks, int kCount>
float FitSigned(const float* x, float d, const std::array<int, kSubBlocks>& scales) {
  float xa = 0;
  float aa = 0;
  for (int i = 0; i < kSubBlocks; ++i) {
    const float scale = static_cast<float>(scales[i]);
    const SignedSums sums = SumSigned<Codes, kCount>(x + i * kCount, InverseOrZero(d * scale));
    xa += scale * sums.xq;
    aa += scale * scale * sums.qq;
  }
  return aa > 0.0f ? xa / aa : d;
}

// Scales from low to high of kSubBlocks sub-blocks of kCount elements.
template <typename Codes, int kSubBlocks, int kCount>
SignedScales<kSubBlocks> SearchSigned(const float* x, int low, int high, const Tries& tries) {
  std::array<float, kSubBlocks> wanted;
  float extreme = 0;
  for (int i = 0; i < kSubBlocks; ++i) {
    wanted[i] = BestSignedScale<Codes, kCount>(x + i * kCount, tries);
    if (std::fabs(wanted[i]) > std::fabs(extreme)) extreme = wanted[i];
  }
  SignedScales<kSubBlocks> best;
  best.d = ScaleToHalf(extreme / static_cast<float>(low));
  float d = HalfToFloat(best.d);
  if (d == 0.0f || !std::isfinite(d)) return best;
  SignedScales<kSubBlocks> current = best;
  for (int i = 0; i < kSubBlocks; ++i) current.scales[i] = ClampedInteger(wanted[i] / d, low, high);
  float best_error = std::numeric_limits<float>::infinity();
  for (int round = 0; round < 4; ++round) {
    const float error = ImproveSigned<Codes, kSubBlocks, kCount>(x, low, high, d, current.scales);
    if (error >= best_error) break;
    best_error = error;
    best = current;
    current.d = ScaleToHalf(FitSigned<Codes, kSubBlocks, kCount>(x, d, current.scales));
    d = HalfToFloat(current.d);
    if (current.d == best.d || d == 0.0f || !std::isfinite(d)) break;
  }
  return best;
}

// ---- Affine
// -----------------------------------------------------------------------------------------------------

// x = scale * code - minimum, minimum >= 0
struct AffineFit {
  float scale = 0;
  float minimum = 0;
};

// Least squares fit to the codes nearest to (x + fit.minimum) / fit.scale. Works on x - lowest, so
// that a block far from zero loses no digits; `error` receives the squared error.
template <int kMaxCode, int kCount>
AffineFit RefitAffine(const float* x, float lowest, const AffineFit& fit, float* error) {
  const float inverse = InverseOrZero(fit.scale);
  const float offset = lowest + fit.minimum;
  float q1 = 0, qq = 0, y1 = 0, yq = 0, yy = 0;
  for (int i = 0; i < kCount; ++i) {
    const float y = x[i] - lowest;
    const float q = WholeCodes<0, kMaxCode>::Nearest((y + offset) * inverse);
    q1 += q;
    qq += q * q;
    y1 += y;
    yq += y * q;
    yy += y * y;
  }
  const float n = kCount;
  const float determinant = n * qq - q1 * q1;
  float scale = determinant > 0.0f ? (n * yq - y1 * q1) / determinant : 0.0f;
  float shift = (scale * q1 - y1) / n;  // y = scale * q - shift
  if (shift < lowest) {                 // the minimum would be negative
    shift = lowest;
    scale = qq > 0.0f ? (yq + lowest * q1) / qq : 0.0f;
  }
  *error = yy + scale * scale * qq + n * shift * shift -
           2.0f * (scale * yq + scale * shift * q1 - shift * y1);
  return {std::max(scale, 0.0f), shift - lowest};
}

// As BestSignedScale: the tries put the range of the values at factors of kMaxCode.
template <int kMaxCode, int kCount>
AffineFit BestAffine(const float* x, const Tries& tries) {
  const auto [low, high] = std::minmax_element(x, x + kCount);
  const float lowest = std::min(*low, 0.0f);
  const float range = *high - lowest;
  if (range < kNegligible) return {0.0f, -lowest};
  AffineFit best;
  float best_error = std::numeric_limits<float>::infinity();
  for (int i = 0; i < tries.count; ++i) {
    const float codes = kMaxCode * (tries.first + static_cast<float>(i) * tries.step);
    AffineFit fit{range / codes, -lowest};
    for (int round = 0; round < 2; ++round) {
      float error;
      fit = RefitAffine<kMaxCode, kCount>(x, lowest, fit, &error);
      if (error >= best_error) break;
      best_error = error;
      best = fit;
    }
  }
  return best;
}

template <int kSubBlocks>
struct AffineScales {
  uint16_t d = 0;     // half
  uint16_t dmin = 0;  // half
  std::array<int, kSubBlocks> scales{};
  std::array<int, kSubBlocks> minimums{};
};

template <int kMaxCode, int kCount>
float AffineError(const float* x, float scale, float minimum) {
  const float inverse = InverseOrZero(scale);
  float error = 0;
  for (int i = 0; i < kCount; ++i) {
    const float q = WholeCodes<0, kMaxCode>::Nearest((x[i] + minimum) * inverse);
    const float difference = x[i] - (scale * q - minimum);
    error += difference * difference;
  }
  return error;
}

// Moves scale and minimum of each sub-block by at most one step; returns the error of the block.
template <int kMaxCode, int kSubBlocks, int kCount>
float ImproveAffine(const float* x, int high, AffineScales<kSubBlocks>& state) {
  const float d = HalfToFloat(state.d);
  const float dmin = HalfToFloat(state.dmin);
  float total = 0;
  for (int i = 0; i < kSubBlocks; ++i) {
    float best = std::numeric_limits<float>::infinity();
    const int scale_centre = state.scales[i];
    const int minimum_centre = state.minimums[i];
    for (int step = 0; step < 9; ++step) {
      const int scale = scale_centre + step / 3 - 1;
      const int minimum = minimum_centre + step % 3 - 1;
      if (std::min(scale, minimum) < 0 || std::max(scale, minimum) > high) continue;
      const float error = AffineError<kMaxCode, kCount>(
          x + i * kCount, d * static_cast<float>(scale), dmin * static_cast<float>(minimum));
      if (error < best) {
        best = error;
        state.scales[i] = scale;
        state.minimums[i] = minimum;
      }
    }
    total += best;
  }
  return total;
}

// d and dmin of least squared error for the codes that `state` chooses.
template <int kMaxCode, int kSubBlocks, int kCount>
void FitAffine(const float* x, AffineScales<kSubBlocks>& state) {
  const float d = HalfToFloat(state.d);
  const float dmin = HalfToFloat(state.dmin);
  float aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;  // x = d * a - dmin * b
  for (int i = 0; i < kSubBlocks; ++i) {
    const float scale = static_cast<float>(state.scales[i]);
    const float b = static_cast<float>(state.minimums[i]);
    const float inverse = InverseOrZero(d * scale);
    float a1 = 0, x1 = 0;
    for (int l = i * kCount; l < (i + 1) * kCount; ++l) {
      const float a = scale * WholeCodes<0, kMaxCode>::Nearest((x[l] + dmin * b) * inverse);
      a1 += a;
      aa += a * a;
      xa += x[l] * a;
      x1 += x[l];
    }
    ab += a1 * b;
    bb += static_cast<float>(kCount) * b * b;
    xb += x1 * b;
  }
  const float determinant = aa * bb - ab * ab;
  if (determinant > 1e-6f * aa * bb) {
    const float fitted = (xa * bb - xb * ab) / determinant;
    const float fitted_min = (xa * ab - xb * aa) / determinant;
    if (fitted > 0.0f && fitted_min > 0.0f) {
      state.d = ScaleToHalf(fitted);
      state.dmin = ScaleToHalf(fitted_min);
    }
  } else if (aa > 0.0f && bb == 0.0f && xa > 0.0f) {
    state.d = ScaleToHalf(xa / aa);
  }
}

// Scales and minimums from 0 to high of kSubBlocks sub-blocks of kCount elements with codes 0 to
// kMaxCode.
template <int kMaxCode, int kSubBlocks, int kCount>
AffineScales<kSubBlocks> SearchAffine(const float* x, int high, const Tries& tries) {
  std::array<AffineFit, kSubBlocks> wanted;
  AffineFit largest;
  for (int i = 0; i < kSubBlocks; ++i) {
    wanted[i] = BestAffine<kMaxCode, kCount>(x + i * kCount, tries);
    largest.scale = std::max(largest.scale, wanted[i].scale);
    largest.minimum = std::max(largest.minimum, wanted[i].minimum);
  }
  AffineScales<kSubBlocks> best;
  best.d = ScaleToHalf(largest.scale / static_cast<float>(high));
  best.dmin = ScaleToHalf(largest.minimum / static_cast<float>(high));
  const float d = HalfToFloat(best.d);
  const float dmin = HalfToFloat(best.dmin);
  if (!std::isfinite(d) || !std::isfinite(dmin)) return best;
  AffineScales<kSubBlocks> current = best;
  for (int i = 0; i < kSubBlocks; ++i) {
    current.scales[i] = ClampedInteger(wanted[i].scale * InverseOrZero(d), 0, high);
    current.minimums[i] = ClampedInteger(wanted[i].minimum * InverseOrZero(dmin), 0, high);
  }
  float best_error = std::numeric_limits<float>::infinity();
  for (int round = 0; round < 4; ++round) {
    const float error = ImproveAffine<kMaxCode, kSubBlocks, kCount>(x, high, current);
    if (error >= best_error) break;
    best_error = error;
    best = current;
    FitAffine<kMaxCode, kSubBlocks, kCount>(x, current);
    const bool same = current.d == best.d && current.dmin == best.dmin;
    if (same || !std::isfinite(HalfToFloat(current.d)) ||
        !std::isfinite(HalfToFloat(current.dmin))) {
      break;
    }
  }
  return best;
}

}  // namespace weft
