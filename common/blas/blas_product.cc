#include "common/blas/blas_product.h"

#include <algorithm>

namespace weft {
namespace {

// What one thread does in about a millisecond, in flops; slow processors included.
constexpr int64_t kTickFlops = int64_t{4} << 24;
// Narrower tiles make the library slow.
constexpr int64_t kLeastTileRows = 64;
constexpr int64_t kLeastTileColumns = 32;

// Rows and columns of one call of the library.
struct Tile {
  int64_t rows;
  int64_t columns;
};

int64_t PanelRows(const TensorLayout& weights) {
  const int64_t row_bytes = std::max<int64_t>(weights.ne[0], 1) * int64_t{sizeof(float)};
  return std::clamp<int64_t>(kBlasPanelBytes / row_bytes, 1, std::max<int64_t>(weights.ne[1], 1));
}

// The whole product where nobody waits for progress; a panel where weights are expanded.
Tile TileOf(const BlasOperands& operands, const BlasLaunch& launch) {
  const int64_t k = operands.a_layout.ne[0];
  Tile tile = {operands.a_layout.ne[1], operands.b_layout.ne[1]};
  if (operands.a_layout.dtype != DType::kF32) tile.rows = PanelRows(operands.a_layout);
  if (!launch.progress) return tile;
  const int64_t elements = kTickFlops * launch.threads / (2 * k);
  tile.rows = std::min(tile.rows, std::max(elements / tile.columns, kLeastTileRows));
  tile.columns = std::min(tile.columns, std::max(elements / tile.rows, kLeastTileColumns));
  return tile;
}

class Product {
 public:
  Product(const BlasOperands& operands, const BlasLaunch& launch)
      : operands_(operands), launch_(launch), tile_(TileOf(operands, launch)) {}

  // The product of matrix `a` of the weights with matrix `b` of the columns, both counted through
  // all batches; the result's is b too.
  void Run(int64_t a, int64_t b) {
    const Extents& ne = operands_.a_layout.ne;
    const int64_t matrix_bytes = ne[1] * RowByteSize(operands_.a_layout);
    const uint8_t* weights = operands_.a + a * matrix_bytes;
    const int64_t n = operands_.b_layout.ne[1];
    const float* columns = operands_.b + b * n * ne[0];
    float* result = operands_.c + b * n * ne[1];
    for (int64_t row = 0; row < ne[1]; row += tile_.rows) {
      const int64_t rows = std::min(tile_.rows, ne[1] - row);
      const float* panel = Panel(weights + row * RowByteSize(operands_.a_layout), rows);
      for (int64_t column = 0; column < n; column += tile_.columns) {
        SgemmOperands tile;
        tile.k = static_cast<int32_t>(ne[0]);
        tile.rows = static_cast<int32_t>(rows);
        tile.columns = static_cast<int32_t>(std::min(tile_.columns, n - column));
        tile.a = panel;
        tile.b = columns + column * ne[0];
        tile.c = result + column * ne[1] + row;
        tile.a_stride = tile.b_stride = tile.k;
        tile.c_stride = static_cast<int32_t>(ne[1]);
        launch_.library.Multiply(tile, launch_.threads);
        if (launch_.progress) launch_.progress();
      }
    }
  }

 private:
  // Rows of weights in F32.
  const float* Panel(const uint8_t* rows, int64_t count) const {
    const DType dtype = operands_.a_layout.dtype;
    if (dtype == DType::kF32) return reinterpret_cast<const float*>(rows);
    const cpu::Format format = dtype == DType::kF16 ? cpu::kFormatF16 : cpu::kFormatBF16;
    const int64_t k = operands_.a_layout.ne[0];
    // Rows lie without gaps.
    launch_.kernels.row[format].to_float(count * k, rows, launch_.workspace);
    return launch_.workspace;
  }

  const BlasOperands& operands_;
  const BlasLaunch& launch_;
  const Tile tile_;
};

}  // namespace

int64_t BlasWorkspaceBytes(const TensorLayout& weights) {
  if (weights.dtype == DType::kF32) return 0;
  return PanelRows(weights) * weights.ne[0] * int64_t{sizeof(float)};
}

void RunBlasProduct(const BlasOperands& operands, const BlasLaunch& launch) {
  Product product(operands, launch);
  const Extents& a = operands.a_layout.ne;
  const Extents& b = operands.b_layout.ne;
  const int64_t repeat2 = b[2] / a[2];
  const int64_t repeat3 = b[3] / a[3];
  for (int64_t i3 = 0; i3 < b[3]; ++i3) {
    for (int64_t i2 = 0; i2 < b[2]; ++i2) {
      product.Run(i3 / repeat3 * a[2] + i2 / repeat2, i3 * b[2] + i2);
    }
  }
}

}  // namespace weft
