// Element by element (spec G.0).
#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "common/cpu/reference/evaluators.h"

namespace weft::reference {
namespace {

template <typename Function>
absl::Status Map(const Operands& operands, Function function) {
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  ForEachRow(y.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    for (int64_t i0 = 0; i0 < y.extent(0); ++i0) {
      y.F32(i0, i1, i2, i3) = static_cast<float>(function(x.F32(i0, i1, i2, i3)));
    }
  });
  return absl::OkStatus();
}

// The second source repeats over the first (spec 0.4).
template <typename Function>
absl::Status Combine(const Operands& operands, Function function) {
  const HostTensor& a = operands.source(0);
  const HostTensor& b = operands.source(1);
  const HostTensor& y = operands.result;
  ForEachRow(y.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    for (int64_t i0 = 0; i0 < y.extent(0); ++i0) {
      const float other =
          b.F32(i0 % b.extent(0), i1 % b.extent(1), i2 % b.extent(2), i3 % b.extent(3));
      y.F32(i0, i1, i2, i3) = function(a.F32(i0, i1, i2, i3), other);
    }
  });
  return absl::OkStatus();
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double GeluTanh(double x) {
  return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * x * (1 + 0.044715 * x * x)));
}

double Apply(UnaryKind kind, double x) {
  switch (kind) {
    case UnaryKind::kSilu:
      return x * Sigmoid(x);
    case UnaryKind::kGelu:
      return GeluTanh(x);
    case UnaryKind::kGeluErf:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case UnaryKind::kGeluQuick:
      return x * Sigmoid(1.702 * x);
    case UnaryKind::kSigmoid:
      return Sigmoid(x);
    case UnaryKind::kTanh:
      return std::tanh(x);
    case UnaryKind::kExp:
      return std::exp(x);
    case UnaryKind::kNeg:
      return -x;
    case UnaryKind::kRelu:
      return x > 0 ? x : 0;
    case UnaryKind::kSoftplus:
      return x > 20 ? x : std::log1p(std::exp(x));
    case UnaryKind::kSqr:
      return x * x;
    case UnaryKind::kSqrt:
      return std::sqrt(x);
    case UnaryKind::kLog:
      return std::log(x);
    case UnaryKind::kSin:
      return std::sin(x);
    case UnaryKind::kCos:
      return std::cos(x);
  }
  return 0;
}

double Gate(const GluAttributes& attributes, double gate, double up) {
  switch (attributes.kind) {
    case GluKind::kSwiglu:
      return gate * Sigmoid(gate) * up;
    case GluKind::kGeglu:
      return GeluTanh(gate) * up;
    case GluKind::kReglu:
      return (gate > 0 ? gate : 0) * up;
    case GluKind::kSwigluOai: {
      const double limit = attributes.limit;
      const double x = std::min(gate, limit);
      const double y = std::clamp(up, -limit, limit);
      return x * Sigmoid(attributes.alpha * x) * (y + 1);
    }
  }
  return 0;
}

}  // namespace

absl::Status Add(const Operands& operands) {
  return Combine(operands, [](float a, float b) { return a + b; });
}

absl::Status Sub(const Operands& operands) {
  return Combine(operands, [](float a, float b) { return a - b; });
}

absl::Status Mul(const Operands& operands) {
  return Combine(operands, [](float a, float b) { return a * b; });
}

absl::Status Div(const Operands& operands) {
  return Combine(operands, [](float a, float b) { return a / b; });
}

// A negative id adds nothing: the row belongs to no expert (decision 14).
absl::Status AddId(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  const HostTensor& bias = operands.source(1);
  const HostTensor& ids = operands.source(2);
  const HostTensor& y = operands.result;
  for (int64_t t = 0; t < y.extent(2); ++t) {
    for (int64_t s = 0; s < y.extent(1); ++s) {
      const int32_t id = ids.I32(s, t);
      if (id >= 0) RETURN_IF_ERROR(CheckIndex("id", id, bias.extent(1)));
      for (int64_t i = 0; i < y.extent(0); ++i) {
        y.F32(i, s, t) = id < 0 ? x.F32(i, s, t) : x.F32(i, s, t) + bias.F32(i, id);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Scale(const Operands& operands) {
  const auto& scale = operands.As<ScaleAttributes>();
  return Map(operands, [&](float x) { return x * scale.factor + scale.bias; });
}

absl::Status Clamp(const Operands& operands) {
  const auto& clamp = operands.As<ClampAttributes>();
  return Map(operands, [&](float x) { return std::min(std::max(x, clamp.low), clamp.high); });
}

absl::Status Unary(const Operands& operands) {
  const UnaryKind kind = operands.As<UnaryAttributes>().kind;
  return Map(operands, [&](float x) { return Apply(kind, x); });
}

absl::Status Glu(const Operands& operands) {
  const auto& attributes = operands.As<GluAttributes>();
  const HostTensor& y = operands.result;
  const bool halves = !operands.has_source(1);
  const HostTensor& gate = operands.source(0);
  const HostTensor& up = operands.source(halves ? 0 : 1);
  const int64_t n = y.extent(0);
  const int64_t gate_start = halves && attributes.swapped ? n : 0;
  const int64_t up_start = halves && !attributes.swapped ? n : 0;
  ForEachRow(y.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    for (int64_t i0 = 0; i0 < n; ++i0) {
      y.F32(i0, i1, i2, i3) = static_cast<float>(Gate(
          attributes, gate.F32(gate_start + i0, i1, i2, i3), up.F32(up_start + i0, i1, i2, i3)));
    }
  });
  return absl::OkStatus();
}

}  // namespace weft::reference
