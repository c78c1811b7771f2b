// Along rows. Each row is one worker's, so no sum depends on the partition.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/functional/function_ref.h"
#include "common/cpu/ops/ops.h"
#include "common/cpu/ops/row_index.h"

namespace weft::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using RowFunction = absl::FunctionRef<void(const RowIndex& at)>;

// Calls function for each row of source 0; `work` per element.
absl::Status EachRow(const Operands& operands, Launch& launch, int64_t work, RowFunction function) {
  const TensorLayout& x = operands.source(0).layout;
  launch.ForRange(RowCount(x), x.ne[0] * work, [&](int64_t first, int64_t last, int) {
    for (int64_t row = first; row < last; ++row) function(RowAt(x.ne, row));
  });
  return absl::OkStatus();
}

double Sum(int64_t n, const float* x) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

void NormRow(int64_t n, const float* x, const float* weight, float epsilon, float* y) {
  const double mean = Sum(n, x) / static_cast<double>(n);
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + epsilon);
  for (int64_t i = 0; i < n; ++i) {
    const double value = (x[i] - mean) * factor;
    y[i] = static_cast<float>(weight == nullptr ? value : value * weight[i]);
  }
}

void SoftMaxRow(const KernelTable& kernels, int64_t n, const float* x, float scale, float* y) {
  kernels.scale(n, x, scale, 0, y);
  const float maximum = kernels.max(n, y);
  if (maximum == -kInfinity) {
    std::fill(y, y + n, 0.0f);
    return;
  }
  const float sum = kernels.exp_sum(n, y, maximum, y);
  kernels.scale(n, y, 1 / sum, 0, y);
}

// The k best of a row, best first: a heap of the best so far with the worst of them on top.
void TopKRow(const float* x, int64_t n, int32_t* best, int32_t k) {
  const auto key = [x](int32_t i) { return std::isnan(x[i]) ? -kInfinity : x[i]; };
  const auto better = [&](int32_t a, int32_t b) {
    return key(a) != key(b) ? key(a) > key(b) : a < b;
  };
  for (int32_t i = 0; i < k; ++i) best[i] = i;
  std::make_heap(best, best + k, better);
  for (auto i = k; i < n; ++i) {
    if (!better(i, best[0])) continue;
    std::pop_heap(best, best + k, better);
    best[k - 1] = i;
    std::push_heap(best, best + k, better);
  }
  std::sort_heap(best, best + k, better);
}

}  // namespace

absl::Status RunNorm(const Operands& operands, Launch& launch) {
  const HostTensor& x = operands.source(0);
  const float* weight = operands.has_source(1) ? &operands.source(1).F32(0) : nullptr;
  return EachRow(operands, launch, 4, [&](const RowIndex& at) {
    NormRow(x.extent(0), FloatRow(x, at), weight, operands.As<NormAttributes>().epsilon,
            FloatRow(operands.result, at));
  });
}

absl::Status RunRmsNorm(const Operands& operands, Launch& launch) {
  const HostTensor& x = operands.source(0);
  const float* weight = operands.has_source(1) ? &operands.source(1).F32(0) : nullptr;
  return EachRow(operands, launch, 2, [&](const RowIndex& at) {
    launch.kernels().rms_norm(x.extent(0), FloatRow(x, at), weight,
                              operands.As<NormAttributes>().epsilon, FloatRow(operands.result, at));
  });
}

absl::Status RunL2Norm(const Operands& operands, Launch& launch) {
  const HostTensor& x = operands.source(0);
  return EachRow(operands, launch, 2, [&](const RowIndex& at) {
    const float* row = FloatRow(x, at);
    const float length = std::sqrt(launch.kernels().dot(x.extent(0), row, row));
    const float divisor = std::max(length, operands.As<NormAttributes>().epsilon);
    launch.kernels().scale(x.extent(0), row, 1 / divisor, 0, FloatRow(operands.result, at));
  });
}

absl::Status RunSoftMax(const Operands& operands, Launch& launch) {
  const HostTensor& x = operands.source(0);
  return EachRow(operands, launch, 6, [&](const RowIndex& at) {
    SoftMaxRow(launch.kernels(), x.extent(0), FloatRow(x, at),
               operands.As<SoftMaxAttributes>().scale, FloatRow(operands.result, at));
  });
}

absl::Status RunSumRows(const Operands& operands, Launch& launch) {
  const HostTensor& x = operands.source(0);
  return EachRow(operands, launch, 1, [&](const RowIndex& at) {
    *FloatRow(operands.result, at) = static_cast<float>(Sum(x.extent(0), FloatRow(x, at)));
  });
}

absl::Status RunMean(const Operands& operands, Launch& launch) {
  const HostTensor& x = operands.source(0);
  const auto n = static_cast<double>(std::max<int64_t>(x.extent(0), 1));
  return EachRow(operands, launch, 1, [&](const RowIndex& at) {
    *FloatRow(operands.result, at) = static_cast<float>(Sum(x.extent(0), FloatRow(x, at)) / n);
  });
}

absl::Status RunArgMax(const Operands& operands, Launch& launch) {
  const HostTensor& x = operands.source(0);
  return EachRow(operands, launch, 1, [&](const RowIndex& at) {
    const float* row = FloatRow(x, at);
    int64_t best = 0;
    for (int64_t i = 1; i < x.extent(0); ++i) {
      if (row[i] > row[best]) best = i;
    }
    operands.result.I32(0, at.i1, at.i2, at.i3) = static_cast<int32_t>(best);
  });
}

absl::Status RunTopK(const Operands& operands, Launch& launch) {
  const HostTensor& x = operands.source(0);
  const HostTensor& y = operands.result;
  const Extents& ne = x.layout.ne;
  const int32_t k = operands.As<TopKAttributes>().k;
  return EachRow(operands, launch, 2, [&](const RowIndex& at) {
    int32_t* ids = &y.I32(0, at.i1, at.i2, at.i3);
    const int64_t row = (at.i3 * ne[2] + at.i2) * ne[1] + at.i1;
    if (operands.has_source(1) && operands.source(1).I32(row) < 0) {
      std::fill(ids, ids + k, -1);
    } else {
      TopKRow(FloatRow(x, at), ne[0], ids, k);
    }
  });
}

}  // namespace weft::cpu
