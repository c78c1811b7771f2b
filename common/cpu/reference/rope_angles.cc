#include "common/cpu/reference/rope_angles.h"

#include <algorithm>
#include <cmath>

namespace weft {

double RopeAngles::Correction(double beta) const {
  constexpr double kTwoPi = 6.283185307179586476925;
  const double turns = static_cast<double>(attributes_.original_context) / (beta * kTwoPi);
  return attributes_.dimensions * std::log(turns) / (2 * std::log(attributes_.base));
}

double RopeAngles::Frequency(int64_t pair, double divisor) const {
  const double exponent = -2.0 * static_cast<double>(pair) / attributes_.dimensions;
  const double extrapolated = std::pow(static_cast<double>(attributes_.base), exponent) / divisor;
  const double interpolated = attributes_.frequency_scale * extrapolated;
  if (attributes_.extrapolation == 0) return interpolated;
  const double low = std::max(0.0, std::floor(Correction(attributes_.beta_fast)));
  const double high =
      std::min(attributes_.dimensions - 1.0, std::ceil(Correction(attributes_.beta_slow)));
  const double place = (static_cast<double>(pair) - low) / std::max(0.001, high - low);
  const double ramp = 1 - std::clamp(place, 0.0, 1.0);
  const double mix = ramp * attributes_.extrapolation;
  return interpolated * (1 - mix) + extrapolated * mix;
}

double RopeAngles::magnitude() const {
  const double factor = attributes_.attention_factor;
  if (attributes_.extrapolation == 0) return factor;
  return factor * (1 + 0.1 * std::log(1.0 / attributes_.frequency_scale));
}

int RopeAngles::PositionIndex(int64_t pair) const {
  constexpr int kTime = 0, kHeight = 1, kWidth = 2, kExtra = 3;
  const auto& s = attributes_.sections;
  const int64_t sum = int64_t{s[0]} + s[1] + s[2] + s[3];
  if (attributes_.kind == RopeKind::kSections) {
    const int64_t k = pair % sum;
    if (k < s[0]) return kTime;
    if (k < int64_t{s[0]} + s[1]) return kHeight;
    return k < int64_t{s[0]} + s[1] + s[2] ? kWidth : kExtra;
  }
  if (attributes_.kind == RopeKind::kInterleaved) {
    const int64_t k = pair % sum;
    if (k % 3 == 1 && k < int64_t{3} * s[1]) return kHeight;
    if (k % 3 == 2 && k < int64_t{3} * s[2]) return kWidth;
    return k % 3 == 0 && k < int64_t{3} * s[0] ? kTime : kExtra;
  }
  return kTime;
}

}  // namespace weft
