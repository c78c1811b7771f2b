// Rotary embedding. The sine and cosine of a token are computed once, in double precision, and
// serve all its heads.
#include <algorithm>
#include <cmath>

#include "common/base/checked_math.h"
#include "common/cpu/ops/ops.h"
#include "common/cpu/reference/rope_angles.h"

namespace weft::cpu {
namespace {

// Workspace: the frequencies of all pairs (double), then per worker the cosines and sines.
int64_t FrequencyBytes(int64_t pairs) { return AlignUp(pairs * 8, 64); }
int64_t AngleBytes(int64_t pairs) { return AlignUp(pairs * 8, 64); }

struct Rotation {
  const Operands& operands;
  const RopeAttributes& attributes;
  RopeAngles angles;
  int64_t pairs;
  double* frequencies;

  // Cosines then sines of one token, magnitude included.
  void Angles(int64_t token, float* cosine, float* sine) const {
    const HostTensor& positions = operands.source(1);
    const int64_t tokens = operands.result.extent(2);
    const double magnitude = angles.magnitude();
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const int32_t position = positions.I32(angles.PositionIndex(pair) * tokens + token);
      const double angle = position * frequencies[pair];
      cosine[pair] = static_cast<float>(magnitude * std::cos(angle));
      sine[pair] = static_cast<float>(magnitude * std::sin(angle));
    }
  }

  void Rotate(const KernelTable& kernels, int64_t token, const float* cosine,
              const float* sine) const {
    const HostTensor& x = operands.source(0);
    const HostTensor& y = operands.result;
    const bool adjacent = attributes.kind == RopeKind::kAdjacent;
    const auto rotate = adjacent ? kernels.rope_adjacent : kernels.rope_half;
    for (int64_t head = 0; head < x.extent(1); ++head) {
      const float* from = &x.F32(0, head, token);
      float* to = &y.F32(0, head, token);
      rotate(pairs, from, cosine, sine, to);
      if (from != to) std::copy(from + 2 * pairs, from + x.extent(0), to + 2 * pairs);
    }
  }
};

}  // namespace

int64_t RopeWorkspace(const Operands& operands, const KernelTable&, int threads) {
  const int64_t pairs = operands.As<RopeAttributes>().dimensions / 2;
  return FrequencyBytes(pairs) + threads * AngleBytes(pairs);
}

absl::Status RunRope(const Operands& operands, Launch& launch) {
  const auto& attributes = operands.As<RopeAttributes>();
  const int64_t pairs = attributes.dimensions / 2;
  Rotation rotation{operands, attributes, RopeAngles(attributes), pairs,
                    reinterpret_cast<double*>(launch.workspace())};
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const double divisor = operands.has_source(2) ? operands.source(2).F32(pair) : 1.0;
    rotation.frequencies[pair] = rotation.angles.Frequency(pair, divisor);
  }
  // A sine and cosine cost about as much as turning thirty pairs.
  const int64_t work = pairs * (60 + 2 * operands.result.extent(1));
  launch.ForRange(operands.result.extent(2), work, [&](int64_t first, int64_t last, int worker) {
    auto* cosine = reinterpret_cast<float*>(launch.workspace() + FrequencyBytes(pairs) +
                                            worker * AngleBytes(pairs));
    float* sine = cosine + pairs;
    for (int64_t token = first; token < last; ++token) {
      rotation.Angles(token, cosine, sine);
      rotation.Rotate(launch.kernels(), token, cosine, sine);
    }
  });
  return absl::OkStatus();
}

}  // namespace weft::cpu
