// Along rows (spec G.0). Sums in double precision.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "common/cpu/reference/evaluators.h"

namespace weft::reference {
namespace {

double Sum(const HostTensor& x, int64_t i1, int64_t i2, int64_t i3) {
  double sum = 0;
  for (int64_t i0 = 0; i0 < x.extent(0); ++i0) sum += x.F32(i0, i1, i2, i3);
  return sum;
}

// Sum of (x - shift)^2.
double SquareSum(const HostTensor& x, double shift, int64_t i1, int64_t i2, int64_t i3) {
  double sum = 0;
  for (int64_t i0 = 0; i0 < x.extent(0); ++i0) {
    const double value = x.F32(i0, i1, i2, i3) - shift;
    sum += value * value;
  }
  return sum;
}

double WeightAt(const Operands& operands, int64_t i0) {
  return operands.has_source(1) ? operands.source(1).F32(i0) : 1.0;
}

}  // namespace

absl::Status Norm(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  const auto n = static_cast<double>(x.extent(0));
  ForEachRow(x.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    const double mean = Sum(x, i1, i2, i3) / n;
    const double variance = SquareSum(x, mean, i1, i2, i3) / n;
    const double factor = 1 / std::sqrt(variance + operands.As<NormAttributes>().epsilon);
    for (int64_t i0 = 0; i0 < x.extent(0); ++i0) {
      const double value = (x.F32(i0, i1, i2, i3) - mean) * factor * WeightAt(operands, i0);
      y.F32(i0, i1, i2, i3) = static_cast<float>(value);
    }
  });
  return absl::OkStatus();
}

absl::Status RmsNorm(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  const auto n = static_cast<double>(x.extent(0));
  ForEachRow(x.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    const double mean = SquareSum(x, 0, i1, i2, i3) / n;
    const double factor = 1 / std::sqrt(mean + operands.As<NormAttributes>().epsilon);
    for (int64_t i0 = 0; i0 < x.extent(0); ++i0) {
      const double value = x.F32(i0, i1, i2, i3) * factor * WeightAt(operands, i0);
      y.F32(i0, i1, i2, i3) = static_cast<float>(value);
    }
  });
  return absl::OkStatus();
}

absl::Status L2Norm(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  ForEachRow(x.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    const double length = std::sqrt(SquareSum(x, 0, i1, i2, i3));
    const double divisor = std::max<double>(length, operands.As<NormAttributes>().epsilon);
    for (int64_t i0 = 0; i0 < x.extent(0); ++i0) {
      y.F32(i0, i1, i2, i3) = static_cast<float>(x.F32(i0, i1, i2, i3) / divisor);
    }
  });
  return absl::OkStatus();
}

// A row that is -infinity throughout gives zeros, as a masked row of attention does.
absl::Status SoftMax(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  const double scale = operands.As<SoftMaxAttributes>().scale;
  ForEachRow(x.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    double maximum = -std::numeric_limits<double>::infinity();
    for (int64_t i0 = 0; i0 < x.extent(0); ++i0) {
      maximum = std::max(maximum, scale * x.F32(i0, i1, i2, i3));
    }
    const bool empty = maximum == -std::numeric_limits<double>::infinity();
    double sum = 0;
    for (int64_t i0 = 0; i0 < x.extent(0); ++i0) {
      sum += empty ? 1 : std::exp(scale * x.F32(i0, i1, i2, i3) - maximum);
    }
    for (int64_t i0 = 0; i0 < x.extent(0); ++i0) {
      const double value = empty ? 0 : std::exp(scale * x.F32(i0, i1, i2, i3) - maximum) / sum;
      y.F32(i0, i1, i2, i3) = static_cast<float>(value);
    }
  });
  return absl::OkStatus();
}

absl::Status SumRows(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  ForEachRow(x.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    operands.result.F32(0, i1, i2, i3) = static_cast<float>(Sum(x, i1, i2, i3));
  });
  return absl::OkStatus();
}

// The mean of an empty row is 0.
absl::Status Mean(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  const auto n = static_cast<double>(std::max<int64_t>(x.extent(0), 1));
  ForEachRow(x.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    operands.result.F32(0, i1, i2, i3) = static_cast<float>(Sum(x, i1, i2, i3) / n);
  });
  return absl::OkStatus();
}

absl::Status CumSum(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  ForEachRow(x.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    double sum = 0;
    for (int64_t i0 = 0; i0 < x.extent(0); ++i0) {
      sum += x.F32(i0, i1, i2, i3);
      operands.result.F32(i0, i1, i2, i3) = static_cast<float>(sum);
    }
  });
  return absl::OkStatus();
}

// The lowest index of the largest value.
absl::Status ArgMax(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  ForEachRow(x.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    int64_t best = 0;
    for (int64_t i0 = 1; i0 < x.extent(0); ++i0) {
      if (x.F32(i0, i1, i2, i3) > x.F32(best, i1, i2, i3)) best = i0;
    }
    operands.result.I32(0, i1, i2, i3) = static_cast<int32_t>(best);
  });
  return absl::OkStatus();
}

// Descending; equal values by ascending index; NaN counts as the least value. A row whose position
// is negative is padding and gets ids of -1 (decision 14).
absl::Status TopK(const Operands& operands) {
  const HostTensor& x = operands.source(0);
  const int32_t k = operands.As<TopKAttributes>().k;
  std::vector<int32_t> order(static_cast<size_t>(x.extent(0)));
  int64_t row = 0;
  ForEachRow(x.layout.ne, [&](int64_t i1, int64_t i2, int64_t i3) {
    const bool padding = operands.has_source(1) && operands.source(1).I32(row) < 0;
    ++row;
    const auto key = [&](int32_t i) {
      const float value = x.F32(i, i1, i2, i3);
      return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
    };
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int32_t a, int32_t b) {
      return key(a) != key(b) ? key(a) > key(b) : a < b;
    });
    for (int64_t i = 0; i < k; ++i) {
      operands.result.I32(i, i1, i2, i3) = padding ? -1 : order[static_cast<size_t>(i)];
    }
  });
  return absl::OkStatus();
}

}  // namespace weft::reference
