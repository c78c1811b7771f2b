// Matrix products. Columns are prepared once per pass, then every worker multiplies its own rows
// (its own columns where there are few rows).
#include <algorithm>
#include <cstring>

#include "common/base/checked_math.h"
#include "common/cpu/ops/matmul_plan.h"
#include "common/cpu/ops/ops.h"

namespace weft::cpu {
namespace {

// Prepared columns of one pass.
constexpr int64_t kPassBytes = int64_t{16} << 20;

class Product {
 public:
  Product(const Operands& operands, Launch& launch)
      : a_(operands.source(0)),
        b_(operands.source(1)),
        c_(operands.result),
        kernel_(launch.kernels().matmul[FormatOf(a_.layout.dtype)]),
        column_bytes_(kernel_.column_bytes(a_.extent(0))),
        launch_(launch) {}

  // Columns that one pass prepares.
  static int64_t PassColumns(int64_t column_bytes, int64_t columns) {
    return std::clamp<int64_t>(kPassBytes / std::max<int64_t>(column_bytes, 1), 1,
                               std::max<int64_t>(columns, 1));
  }

  void Run() {
    const int64_t columns = b_.extent(1) * b_.extent(2) * b_.extent(3);
    const int64_t pass = PassColumns(column_bytes_, columns);
    for (int64_t first = 0; first < columns; first += pass) {
      first_ = first;
      last_ = std::min(first + pass, columns);
      Prepare();
      Multiply();
    }
  }

 private:
  // Columns of b are numbered through all its batches.
  struct Column {
    int64_t j;
    int64_t i2;
    int64_t i3;
  };
  Column ColumnAt(int64_t column) const {
    const int64_t batch = column / b_.extent(1);
    return {column % b_.extent(1), batch % b_.extent(2), batch / b_.extent(2)};
  }
  uint8_t* Prepared(int64_t column) const {
    return launch_.workspace() + (column - first_) * column_bytes_;
  }

  void Prepare() {
    launch_.ForRange(last_ - first_, a_.extent(0), [&](int64_t first, int64_t last, int) {
      for (int64_t i = first_ + first; i < first_ + last; ++i) {
        const auto [j, i2, i3] = ColumnAt(i);
        kernel_.prepare_column(a_.extent(0), &b_.F32(0, j, i2, i3), Prepared(i));
      }
    });
  }

  // Rows [row, row_end) of a times the columns [column, column_end), which are of one batch.
  void MultiplyTile(int64_t row, int64_t row_end, int64_t column, int64_t column_end, int worker) {
    const auto [j, i2, i3] = ColumnAt(column);
    const int64_t a2 = i2 / (b_.extent(2) / a_.extent(2));
    const int64_t a3 = i3 / (b_.extent(3) / a_.extent(3));
    const TilePlan plan(a_.extent(0), column_bytes_, column_end - column);
    for (int64_t i = row; i < row_end; i += plan.rows) {
      const int64_t rows = std::min(plan.rows, row_end - i);
      for (int64_t from = column; from < column_end; from += plan.columns) {
        const int64_t count = std::min(plan.columns, column_end - from);
        kernel_.multiply(a_.extent(0), a_.Address(0, i, a2, a3), a_.layout.nb[1], rows,
                         Prepared(from), column_bytes_, count,
                         &c_.F32(i, j + from - column, i2, i3), c_.extent(0));
        launch_.Tick(worker);
      }
    }
  }

  // Calls function(first, last) for the parts of columns [first, last) that are of one batch.
  template <typename Function>
  void EachBatch(int64_t first, int64_t last, Function function) const {
    while (first < last) {
      const int64_t end = std::min((first / b_.extent(1) + 1) * b_.extent(1), last);
      function(first, end);
      first = end;
    }
  }

  int64_t FirstBatch() const { return first_ / b_.extent(1); }
  int64_t Batches() const { return (last_ - 1) / b_.extent(1) - FirstBatch() + 1; }

  // One part of the granules of rows, counted through all batches of the pass.
  void MultiplyRows(int64_t granules, int64_t piece, int64_t pieces, int worker) {
    const Part part = PartOf(Batches() * granules, piece, pieces);
    EachBatch(first_, last_, [&](int64_t column, int64_t column_end) {
      const int64_t start = (column / b_.extent(1) - FirstBatch()) * granules;
      const int64_t from = std::max(part.first - start, int64_t{0}) * kGranuleRows;
      const int64_t to = std::min((part.last - start) * kGranuleRows, a_.extent(1));
      if (from < to) MultiplyTile(from, to, column, column_end, worker);
    });
  }

  void MultiplyColumns(int64_t piece, int64_t pieces, int worker) {
    const Part part = PartOf(last_ - first_, piece, pieces);
    EachBatch(first_ + part.first, first_ + part.last, [&](int64_t column, int64_t column_end) {
      MultiplyTile(0, a_.extent(1), column, column_end, worker);
    });
  }

  void Multiply() {
    const double products =
        static_cast<double>(a_.extent(0) * a_.extent(1)) * static_cast<double>(last_ - first_);
    const int64_t granules = CeilDivide(a_.extent(1), kGranuleRows);
    const int threads = launch_.threads();
    if (threads == 1 || products < kParallelProducts) {
      MultiplyRows(granules, 0, 1, 0);
      return;
    }
    if (granules >= threads || last_ - first_ < threads) {
      const int64_t pieces = PieceCount(products, Batches() * granules, threads);
      launch_.ForPieces(pieces, [&](int64_t piece, int worker) {
        MultiplyRows(granules, piece, pieces, worker);
      });
    } else {
      const int64_t pieces = PieceCount(products, last_ - first_, threads);
      launch_.ForPieces(pieces,
                        [&](int64_t piece, int worker) { MultiplyColumns(piece, pieces, worker); });
    }
  }

  const HostTensor& a_;
  const HostTensor& b_;
  const HostTensor& c_;
  const MatmulKernel& kernel_;
  const int64_t column_bytes_;
  Launch& launch_;
  int64_t first_ = 0;  // columns of this pass
  int64_t last_ = 0;
};

}  // namespace

int64_t MulMatWorkspace(const Operands& operands, const KernelTable& kernels, int) {
  const TensorLayout& a = operands.source(0).layout;
  const TensorLayout& b = operands.source(1).layout;
  const int64_t column_bytes = kernels.matmul[FormatOf(a.dtype)].column_bytes(a.ne[0]);
  return Product::PassColumns(column_bytes, RowCount(b)) * column_bytes;
}

absl::Status RunMulMat(const Operands& operands, Launch& launch) {
  const HostTensor& c = operands.result;
  if (ElementCount(c.layout) == 0) return absl::OkStatus();
  if (operands.source(0).extent(0) == 0) {
    std::memset(c.data, 0, static_cast<size_t>(ElementCount(c.layout)) * sizeof(float));
    return absl::OkStatus();
  }
  Product(operands, launch).Run();
  return absl::OkStatus();
}

}  // namespace weft::cpu
