// Checks of matrix products, attention pieces and row conversions.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/unit/common/cpu/kernels/kernel_checks.h"
#include "tests/unit/common/cpu/kernels/kernel_samples.h"

namespace weft::cpu {
namespace {

constexpr float kUntouched = 12345.0f;

std::string At(Format format, int64_t k, int64_t rows, int64_t columns) {
  return std::string(InfoOf(format).name) + " k=" + std::to_string(k) +
         " rows=" + std::to_string(rows) + " columns=" + std::to_string(columns);
}

// The activations as the product sees them: F32, or codes of blocks of 32 times their scale.
std::vector<double> SeenActivations(Format format, int64_t k, const float* x) {
  std::vector<double> seen(x, x + k);
  if (IsFloatFormat(format)) return seen;
  for (int64_t i = 0; i < k; i += 32) {
    float largest = 0;
    for (int e = 0; e < 32; ++e) largest = std::max(largest, std::fabs(x[i + e]));
    const float scale = largest / 127.0f;
    const float inverse = scale == 0 ? 0 : 1 / scale;
    for (int e = 0; e < 32; ++e) {
      seen[i + e] = static_cast<double>(std::round(x[i + e] * inverse)) * scale;
    }
  }
  return seen;
}

struct Product {
  Format format;
  int64_t k, row_count, column_count;
  bool extreme;
};

std::string CheckProduct(const KernelTable& table, const Product& p, Random& random) {
  const MatmulKernel& kernel = table.matmul[p.format];
  const Rows rows = RandomRows(p.format, p.k, p.row_count, p.extreme, random);
  const std::vector<float> x = random.Activations(p.k * p.column_count);
  const Columns columns = PrepareColumns(kernel, p.k, x, p.column_count);
  const int64_t stride = p.row_count + random.Int(0, 2);
  std::vector<float> out(static_cast<size_t>(stride * p.column_count), kUntouched);
  kernel.multiply(p.k, rows.bytes.data() + rows.first, rows.stride, p.row_count, columns.first,
                  columns.stride, p.column_count, out.data(), stride);
  for (int64_t j = 0; j < p.column_count; ++j) {
    const std::vector<double> seen = SeenActivations(p.format, p.k, x.data() + j * p.k);
    for (int64_t i = 0; i < p.row_count; ++i) {
      double sum = 0, magnitude = 0;
      for (int64_t e = 0; e < p.k; ++e) {
        const double w = WeightAt(p.format, rows.row(i), e);
        sum += w * seen[e];
        // Formats with minimums add and subtract parts of about the size of the scale times the
        // code.
        magnitude += std::fabs(seen[e]) * (std::fabs(w) + (IsFloatFormat(p.format) ? 0 : 1e-30));
      }
      // Every step rounds once: 2^-24 of a partial sum. Minimums add a factor.
      const double steps = 8 + static_cast<double>(p.k) / 16;
      const double allowed = steps * 0x1p-23 * magnitude * (p.extreme ? 64 : 8) + 1e-37;
      const float got = out[j * stride + i];
      if (!(std::fabs(got - sum) <= allowed)) {
        return At(p.format, p.k, p.row_count, p.column_count) + ": row " + std::to_string(i) +
               " column " + std::to_string(j) + " is " + std::to_string(got) + ", not " +
               std::to_string(sum) + " within " + std::to_string(allowed);
      }
    }
    for (int64_t i = p.row_count; i < stride; ++i) {
      if (out[j * stride + i] != kUntouched) {
        return At(p.format, p.k, p.row_count, p.column_count) + ": wrote past the rows";
      }
    }
  }
  return "";
}

std::string CheckProducts(const KernelTable& table, uint64_t seed) {
  Random random(seed);
  for (int f = 0; f < kFormatCount; ++f) {
    const auto format = static_cast<Format>(f);
    const int block = InfoOf(format).elements;
    const std::vector<int64_t> extents =
        block == 1 ? std::vector<int64_t>{1, 3, 15, 16, 17, 40, 100, 2051}
                   : std::vector<int64_t>{block, 2 * block, 3 * block, 1024, 1024 + block, 2304};
    for (const int64_t k : extents) {
      for (int round = 0; round < 4; ++round) {
        const int64_t rows = round == 0 ? 1 : random.Int(0, 35);
        const int64_t columns = round == 0 ? 1 : round == 1 ? 1 : random.Int(0, 13);
        std::string wrong = CheckProduct(table, {format, k, rows, columns, round == 3}, random);
        if (!wrong.empty()) return wrong;
      }
    }
  }
  return "";
}

// Any part of a product has the bits of the whole.
std::string CheckTiling(const KernelTable& table, uint64_t seed) {
  Random random(seed);
  for (int f = 0; f < kFormatCount; ++f) {
    const auto format = static_cast<Format>(f);
    const MatmulKernel& kernel = table.matmul[f];
    const int64_t k = InfoOf(format).elements == 1 ? 333 : 1024 + 256;
    const int64_t row_count = 37, column_count = 13;
    const Rows rows = RandomRows(format, k, row_count, false, random);
    const std::vector<float> x = random.Activations(k * column_count);
    const Columns columns = PrepareColumns(kernel, k, x, column_count);
    std::vector<float> whole(row_count * column_count);
    kernel.multiply(k, rows.row(0), rows.stride, row_count, columns.first, columns.stride,
                    column_count, whole.data(), row_count);
    for (int round = 0; round < 30; ++round) {
      const int64_t first_row = random.Int(0, row_count - 1);
      const int64_t first_column = random.Int(0, column_count - 1);
      const int64_t some_rows = random.Int(1, row_count - first_row);
      const int64_t some_columns = round < 10 ? 1 : random.Int(1, column_count - first_column);
      std::vector<float> part(static_cast<size_t>(some_rows * some_columns));
      kernel.multiply(k, rows.row(first_row), rows.stride, some_rows, columns.column(first_column),
                      columns.stride, some_columns, part.data(), some_rows);
      for (int64_t j = 0; j < some_columns; ++j) {
        if (!SameBits(part.data() + j * some_rows,
                      whole.data() + (first_column + j) * row_count + first_row, some_rows)) {
          return At(format, k, some_rows, some_columns) + ": other bits than in the whole product";
        }
      }
    }
  }
  return "";
}

// Rounding to 8 bits loses little, and no-finite activations show.
std::string CheckActivations(const KernelTable& table, uint64_t seed) {
  Random random(seed);
  for (int f = 0; f < kFormatCount; ++f) {
    const auto format = static_cast<Format>(f);
    const MatmulKernel& kernel = table.matmul[f];
    const int64_t k = 512, row_count = 16;
    const Rows rows = RandomRows(format, k, row_count, false, random);
    std::vector<float> x = random.Activations(k);
    std::vector<float> out(row_count);
    Columns column = PrepareColumns(kernel, k, x, 1);
    kernel.multiply(k, rows.row(0), rows.stride, row_count, column.first, column.stride, 1,
                    out.data(), row_count);
    double error = 0, norm = 0;
    for (int64_t i = 0; i < row_count; ++i) {
      double sum = 0;
      for (int64_t e = 0; e < k; ++e) {
        const double term = WeightAt(format, rows.row(i), e) * x[e];
        sum += term;
        norm += term * term;  // not the sum's square: terms that cancel keep their rounding
      }
      error += (sum - out[i]) * (sum - out[i]);
    }
    const double allowed = IsFloatFormat(format) ? 1e-11 : 1e-3;
    if (!(error <= allowed * norm)) {
      return At(format, k, row_count, 1) + ": relative square error " +
             std::to_string(error / norm);
    }
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      x[random.Int(0, k - 1)] = bad;
      for (float& value : out) value = 0;
      column = PrepareColumns(kernel, k, x, 1);
      kernel.multiply(k, rows.row(0), rows.stride, row_count, column.first, column.stride, 1,
                      out.data(), row_count);
      for (const float value : out) {
        if (std::isfinite(value))
          return At(format, k, row_count, 1) + ": lost " + std::to_string(bad);
      }
    }
    const std::vector<float> zero(k);
    column = PrepareColumns(kernel, k, zero, 1);
    kernel.multiply(k, rows.row(0), rows.stride, row_count, column.first, column.stride, 1,
                    out.data(), row_count);
    for (const float value : out) {
      if (value != 0)
        return At(format, k, row_count, 1) + ": zero column gives " + std::to_string(value);
    }
  }
  return "";
}

std::string CheckScores(const KernelTable& table, Format format, int64_t n, int64_t count,
                        Random& random) {
  const RowKernel& kernel = table.row[format];
  const Rows rows = RandomRows(format, n, count, false, random);
  const std::vector<float> q = random.Activations(n);
  std::vector<float> scores(static_cast<size_t>(count) + 1, kUntouched);
  kernel.scores(n, q.data(), rows.bytes.data() + rows.first, rows.stride, count, scores.data());
  const std::vector<float> p = random.Activations(count);
  std::vector<float> out = random.Activations(n);
  std::vector<double> sum(out.begin(), out.end());
  std::vector<double> magnitude(sum.size());
  kernel.accumulate(n, p.data(), rows.bytes.data() + rows.first, rows.stride, count, out.data());
  for (int64_t i = 0; i < count; ++i) {
    double dot = 0, size = 0;
    for (int64_t e = 0; e < n; ++e) {
      const double w = WeightAt(format, rows.row(i), e);
      dot += w * q[e];
      size += std::fabs(w * q[e]);
      sum[e] += w * p[i];
      magnitude[e] += std::fabs(w * p[i]);
    }
    if (!(std::fabs(scores[i] - dot) <= size * 0x1p-23 * (8 + static_cast<double>(n) / 16))) {
      return At(format, n, count, 0) + ": score " + std::to_string(i);
    }
  }
  if (scores[count] != kUntouched) return At(format, n, count, 0) + ": wrote past the scores";
  for (int64_t e = 0; e < n; ++e) {
    if (!(std::fabs(out[e] - sum[e]) <=
          (magnitude[e] + 8) * 0x1p-23 * (2 + static_cast<double>(count)))) {
      return At(format, n, count, 0) + ": accumulated element " + std::to_string(e);
    }
  }
  return "";
}

std::string CheckAttention(const KernelTable& table, uint64_t seed) {
  Random random(seed);
  for (const Format format : {kFormatF32, kFormatF16, kFormatBF16, kFormatQ8_0}) {
    const int64_t block = InfoOf(format).elements;
    for (int round = 0; round < 60; ++round) {
      const int64_t n = block * random.Int(1, block == 1 ? 140 : 5);
      std::string wrong = CheckScores(table, format, n, random.Int(0, 18), random);
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

std::string CheckToFloat(const KernelTable& table, uint64_t seed) {
  Random random(seed);
  for (int f = 0; f < kFormatCount; ++f) {
    const auto format = static_cast<Format>(f);
    for (int round = 0; round < 20; ++round) {
      const int64_t n = InfoOf(format).elements * random.Int(0, round < 2 ? 1 : 50);
      const Rows rows = RandomRows(format, n, 1, round % 2 != 0, random);
      std::vector<float> values(static_cast<size_t>(n) + 1, kUntouched);
      table.row[f].to_float(n, rows.bytes.data() + rows.first, values.data());
      for (int64_t e = 0; e < n; ++e) {
        const double w = WeightAt(format, rows.row(0), e);
        // Formats with minimums subtract: two products of at most 2^-24 error each.
        const double size = std::fabs(w) + 65504.0 * 64 * (round % 2 != 0 ? 31 : 0) + 16;
        const double allowed = IsFloatFormat(format) ? 0 : size * 0x1p-23;
        const bool both_special = !std::isfinite(values[e]) && format == kFormatF16;
        if (!both_special && !(std::fabs(values[e] - w) <= allowed)) {
          return At(format, n, 1, 0) + ": element " + std::to_string(e) + " is " +
                 std::to_string(values[e]) + ", not " + std::to_string(w);
        }
      }
      if (values[n] != kUntouched) return At(format, n, 1, 0) + ": wrote past the row";
    }
  }
  return "";
}

std::string CheckFromFloat(const KernelTable& table, uint64_t seed) {
  Random random(seed);
  for (int f = 0; f < kFormatCount; ++f) {
    const auto format = static_cast<Format>(f);
    const RowKernel& kernel = table.row[f];
    if (kernel.from_float == nullptr) continue;
    for (int round = 0; round < 20; ++round) {
      const int64_t n = InfoOf(format).elements * random.Int(0, 40);
      const std::vector<float> x = random.Activations(n);
      std::vector<uint8_t> row(
          static_cast<size_t>(n / InfoOf(format).elements * InfoOf(format).bytes));
      std::vector<float> back(x.size());
      kernel.from_float(n, x.data(), row.data());
      kernel.to_float(n, row.data(), back.data());
      for (int64_t e = 0; e < n; ++e) {
        // Largest value 8: steps of 8/127 (Q8_0) to 16/15 (Q4_1), MXFP4 at most 1 above 4; floats
        // relative.
        const double allowed = format == kFormatF32    ? 0
                               : format == kFormatF16  ? std::fabs(x[e]) * 0x1p-11 + 0x1p-24
                               : format == kFormatBF16 ? std::fabs(x[e]) * 0x1p-8
                               : format == kFormatQ8_0 ? 0.04
                                                       : 2.0;
        if (!(std::fabs(back[e] - x[e]) <= allowed)) {
          return At(format, n, 1, 0) + ": rounds " + std::to_string(x[e]) + " to " +
                 std::to_string(back[e]);
        }
      }
    }
  }
  return "";
}

}  // namespace

std::vector<KernelCheck> RowChecks() {
  return {{"Products", CheckProducts},       {"Tiling", CheckTiling},
          {"Activations", CheckActivations}, {"Attention", CheckAttention},
          {"ToFloat", CheckToFloat},         {"FromFloat", CheckFromFloat}};
}

std::string CheckSameBits(const KernelTable& a, const KernelTable& b, uint64_t seed) {
  Random random(seed);
  for (int f = 0; f < kFormatCount; ++f) {
    const auto format = static_cast<Format>(f);
    const int64_t k = InfoOf(format).elements == 1 ? 1027 : 1280;
    for (const int64_t column_count : {1, 6}) {
      const int64_t row_count = 21;
      const Rows rows = RandomRows(format, k, row_count, column_count == 6, random);
      const std::vector<float> x = random.Activations(k * column_count);
      std::vector<float> out[2];
      for (int side = 0; side < 2; ++side) {
        const MatmulKernel& kernel = (side == 0 ? a : b).matmul[f];
        const Columns columns = PrepareColumns(kernel, k, x, column_count);
        out[side].resize(static_cast<size_t>(row_count * column_count));
        kernel.multiply(k, rows.row(0), rows.stride, row_count, columns.first, columns.stride,
                        column_count, out[side].data(), row_count);
      }
      if (!SameBits(out[0].data(), out[1].data(), row_count * column_count)) {
        return At(format, k, row_count, column_count) + ": other bits than in the other table";
      }
    }
  }
  const std::vector<float> x = random.Activations(999), y = random.Activations(999);
  std::vector<float> e[2], r[2], h[2];
  float sums[2], dots[2];
  for (int side = 0; side < 2; ++side) {
    const KernelTable& table = side == 0 ? a : b;
    e[side].resize(999);
    r[side].resize(998);
    h[side].resize(998);
    sums[side] = table.exp_sum(999, x.data(), 8, e[side].data());
    dots[side] = table.dot(999, x.data(), y.data());
    table.rope_half(499, x.data(), y.data(), y.data() + 400, r[side].data());
    table.swiglu(998, x.data(), y.data(), h[side].data());
  }
  if (!SameBits(e[0].data(), e[1].data(), 999) || !SameBits(sums, sums + 1, 1))
    return "exp_sum differs";
  if (!SameBits(dots, dots + 1, 1)) return "dot differs";
  if (!SameBits(r[0].data(), r[1].data(), 998)) return "rope_half differs";
  if (!SameBits(h[0].data(), h[1].data(), 998)) return "swiglu differs";
  return "";
}

}  // namespace weft::cpu
