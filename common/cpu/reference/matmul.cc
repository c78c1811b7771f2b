// Products (spec 0.2 and 0.3) and triangular solves.
#include <vector>

#include "common/base/status_macros.h"
#include "common/cpu/reference/evaluators.h"

namespace weft::reference {
namespace {

double Dot(const std::vector<float>& a, const HostTensor& b, int64_t i1, int64_t i2, int64_t i3) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    sum += static_cast<double>(a[k]) * b.F32(static_cast<int64_t>(k), i1, i2, i3);
  }
  return sum;
}

}  // namespace

absl::Status MulMat(const Operands& operands) {
  const HostTensor& a = operands.source(0);
  const HostTensor& b = operands.source(1);
  const HostTensor& c = operands.result;
  const int64_t repeat2 = b.extent(2) / a.extent(2);
  const int64_t repeat3 = b.extent(3) / a.extent(3);
  std::vector<float> row;
  for (int64_t i3 = 0; i3 < c.extent(3); ++i3) {
    for (int64_t i2 = 0; i2 < c.extent(2); ++i2) {
      for (int64_t i = 0; i < c.extent(0); ++i) {
        RETURN_IF_ERROR(ReadRow(a, i, i2 / repeat2, i3 / repeat3, row));
        for (int64_t j = 0; j < c.extent(1); ++j) {
          c.F32(i, j, i2, i3) = static_cast<float>(Dot(row, b, j, i2, i3));
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status MulMatId(const Operands& operands) {
  const HostTensor& a = operands.source(0);
  const HostTensor& b = operands.source(1);
  const HostTensor& ids = operands.source(2);
  const HostTensor& c = operands.result;
  std::vector<float> row;
  for (int64_t t = 0; t < c.extent(2); ++t) {
    for (int64_t s = 0; s < c.extent(1); ++s) {
      const int32_t id = ids.I32(s, t);
      if (id >= 0) RETURN_IF_ERROR(CheckIndex("expert id", id, a.extent(2)));
      for (int64_t i = 0; i < c.extent(0); ++i) {
        double sum = 0;
        if (id >= 0) {
          RETURN_IF_ERROR(ReadRow(a, i, id, 0, row));
          sum = Dot(row, b, s % b.extent(1), t, 0);
        }
        c.F32(i, s, t) = static_cast<float>(sum);
      }
    }
  }
  return absl::OkStatus();
}

// X with A X = B, where A[i][k] is element k of row i. Only the named triangle of A is read.
absl::Status SolveTri(const Operands& operands) {
  const auto& triangle = operands.As<TriangleAttributes>();
  const HostTensor& a = operands.source(0);
  const HostTensor& b = operands.source(1);
  const HostTensor& x = operands.result;
  const int64_t n = a.extent(0);
  ForEachRow({1, x.extent(0), x.extent(2), x.extent(3)}, [&](int64_t j, int64_t i2, int64_t i3) {
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = triangle.lower ? step : n - 1 - step;
      double value = b.F32(j, i, i2, i3);
      for (int64_t known = 0; known < step; ++known) {
        const int64_t k = triangle.lower ? known : n - 1 - known;
        value -= static_cast<double>(a.F32(k, i, i2, i3)) * x.F32(j, k, i2, i3);
      }
      if (triangle.diagonal) value /= a.F32(i, i, i2, i3);
      x.F32(j, i, i2, i3) = static_cast<float>(value);
    }
  });
  return absl::OkStatus();
}

}  // namespace weft::reference
