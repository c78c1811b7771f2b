// Products with the expert that each (slot, token) chose. Choices are grouped by expert, so that an
// expert's weights are read once for all its tokens.
#include <algorithm>
#include <cstring>

#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/cpu/ops/matmul_plan.h"
#include "common/cpu/ops/ops.h"

namespace weft::cpu {
namespace {

// Columns of one call, and rows of the tile that a worker keeps their products in.
constexpr int64_t kTileColumns = 32;
constexpr int64_t kTileRows = 64;
constexpr int64_t kTileBytes = kTileColumns * kTileRows * 4;
// Reading a granule of weights costs as much as multiplying it with so many columns.
constexpr int64_t kReadCost = 4;

// Parts of the workspace.
struct Parts {
  int64_t choices;
  int64_t experts;
  int64_t column_bytes;
  int64_t columns_at;
  int64_t order_at;
  int64_t starts_at;
  int64_t ends_at;
  int64_t tiles_at;
  int64_t bytes;

  Parts(const Operands& operands, const KernelTable& kernels, int threads) {
    const TensorLayout& a = operands.source(0).layout;
    choices = RowCount(operands.result.layout);
    experts = a.ne[2];
    column_bytes = kernels.matmul[FormatOf(a.dtype)].column_bytes(a.ne[0]);
    columns_at = 0;
    order_at = columns_at + AlignUp(choices * column_bytes, 64);
    starts_at = order_at + AlignUp(choices * 4, 64);
    ends_at = starts_at + AlignUp(experts * 4, 64);
    tiles_at = ends_at + AlignUp(experts * 4, 64);
    bytes = tiles_at + threads * kTileBytes;
  }
};

class ExpertProduct {
 public:
  ExpertProduct(const Operands& operands, Launch& launch)
      : a_(operands.source(0)),
        b_(operands.source(1)),
        ids_(operands.source(2)),
        c_(operands.result),
        parts_(operands, launch.kernels(), launch.threads()),
        kernel_(launch.kernels().matmul[FormatOf(a_.layout.dtype)]),
        granules_(CeilDivide(a_.extent(1), kGranuleRows)),
        order_(reinterpret_cast<int32_t*>(launch.workspace() + parts_.order_at)),
        starts_(reinterpret_cast<int32_t*>(launch.workspace() + parts_.starts_at)),
        ends_(reinterpret_cast<int32_t*>(launch.workspace() + parts_.ends_at)),
        launch_(launch) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Group());
    launch_.ForRange(grouped_, a_.extent(0), [&](int64_t first, int64_t last, int) {
      for (int64_t i = first; i < last; ++i) PrepareChoice(i);
    });
    const double products =
        static_cast<double>(a_.extent(0) * a_.extent(1)) * static_cast<double>(grouped_);
    if (launch_.threads() == 1 || products < kParallelProducts) {
      MultiplyPart(0, 1, 0);
    } else {
      const int64_t pieces = PieceCount(products, granules_, launch_.threads());
      launch_.ForPieces(pieces,
                        [&](int64_t piece, int worker) { MultiplyPart(piece, pieces, worker); });
    }
    return absl::OkStatus();
  }

 private:
  // Choice number i is slot i % u of token i / u.
  int64_t SlotOf(int64_t choice) const { return choice % c_.extent(1); }
  int64_t TokenOf(int64_t choice) const { return choice / c_.extent(1); }
  float* Output(int64_t choice) const { return &c_.F32(0, SlotOf(choice), TokenOf(choice)); }

  // Sorts the choices by expert, keeping their order: those of expert e are order_[starts_[e]] to
  // before order_[ends_[e]]. Choices of no expert get their zeros here.
  absl::Status Group() {
    std::fill(ends_, ends_ + parts_.experts, 0);
    for (int64_t i = 0; i < parts_.choices; ++i) {
      const int32_t id = ids_.I32(SlotOf(i), TokenOf(i));
      if (id < 0) continue;
      RETURN_IF_ERROR(reference::CheckIndex("expert id", id, parts_.experts));
      ++ends_[id];
    }
    for (int64_t e = 0; e < parts_.experts; ++e) {
      const int32_t count = ends_[e];
      starts_[e] = ends_[e] = static_cast<int32_t>(grouped_);
      grouped_ += count;
    }
    for (int64_t i = 0; i < parts_.choices; ++i) {
      const int32_t id = ids_.I32(SlotOf(i), TokenOf(i));
      if (id < 0) {
        std::fill(Output(i), Output(i) + c_.extent(0), 0.0f);
      } else {
        order_[ends_[id]++] = static_cast<int32_t>(i);
      }
    }
    return absl::OkStatus();
  }

  uint8_t* Prepared(int64_t place) const {
    return launch_.workspace() + parts_.columns_at + place * parts_.column_bytes;
  }

  void PrepareChoice(int64_t place) const {
    const int64_t choice = order_[place];
    const float* column = &b_.F32(0, SlotOf(choice) % b_.extent(1), TokenOf(choice));
    kernel_.prepare_column(a_.extent(0), column, Prepared(place));
  }

  // The granules of rows, expert by expert, weighed by their cost; each belongs to the piece in
  // whose part of the total its beginning lies.
  void MultiplyPart(int64_t piece, int64_t pieces, int worker) {
    int64_t total = 0;
    for (int64_t e = 0; e < parts_.experts; ++e) total += granules_ * CostOf(e);
    const Part part = PartOf(total, piece, pieces);
    int64_t start = 0;
    for (int64_t e = 0; e < parts_.experts; ++e) {
      const int64_t cost = CostOf(e);
      if (cost == 0) continue;
      const auto granule = [&](int64_t at) {
        return CeilDivide(std::clamp<int64_t>(at - start, 0, granules_ * cost), cost);
      };
      const int64_t row = granule(part.first) * kGranuleRows;
      const int64_t row_end = std::min(granule(part.last) * kGranuleRows, a_.extent(1));
      if (row < row_end) MultiplyRows(e, row, row_end, worker);
      start += granules_ * cost;
    }
  }

  int64_t CostOf(int64_t expert) const {
    const int64_t columns = ends_[expert] - starts_[expert];
    return columns == 0 ? 0 : columns + kReadCost;
  }

  void MultiplyRows(int64_t expert, int64_t row, int64_t row_end, int worker) {
    const int64_t first = starts_[expert];
    const int64_t last = ends_[expert];
    const bool single = last - first == 1;
    const int64_t tile_rows =
        single ? TilePlan(a_.extent(0), parts_.column_bytes, 1).rows : kTileRows;
    for (int64_t i = row; i < row_end; i += tile_rows) {
      const int64_t rows = std::min(tile_rows, row_end - i);
      if (single) {
        Multiply(expert, i, rows, first, 1, Output(order_[first]) + i, rows);
        launch_.Tick(worker);
        continue;
      }
      for (int64_t from = first; from < last; from += kTileColumns) {
        MultiplyTile(expert, i, rows, from, std::min(kTileColumns, last - from), worker);
        launch_.Tick(worker);
      }
    }
  }

  // Multiplies into the worker's tile, then moves each column to where its choice wants it.
  void MultiplyTile(int64_t expert, int64_t row, int64_t rows, int64_t place, int64_t count,
                    int worker) {
    auto* tile =
        reinterpret_cast<float*>(launch_.workspace() + parts_.tiles_at + worker * kTileBytes);
    Multiply(expert, row, rows, place, count, tile, rows);
    for (int64_t j = 0; j < count; ++j) {
      std::memcpy(Output(order_[place + j]) + row, tile + j * rows,
                  static_cast<size_t>(rows) * sizeof(float));
    }
  }

  void Multiply(int64_t expert, int64_t row, int64_t rows, int64_t place, int64_t count, float* out,
                int64_t out_stride) {
    kernel_.multiply(a_.extent(0), a_.Address(0, row, expert), a_.layout.nb[1], rows,
                     Prepared(place), parts_.column_bytes, count, out, out_stride);
  }

  const HostTensor& a_;
  const HostTensor& b_;
  const HostTensor& ids_;
  const HostTensor& c_;
  const Parts parts_;
  const MatmulKernel& kernel_;
  const int64_t granules_;
  int32_t* order_;
  int32_t* starts_;
  int32_t* ends_;
  Launch& launch_;
  int64_t grouped_ = 0;  // choices of some expert
};

}  // namespace

int64_t MulMatIdWorkspace(const Operands& operands, const KernelTable& kernels, int threads) {
  const int64_t k = operands.source(0).layout.ne[0];
  const std::optional<int64_t> values = CheckedMultiply(RowCount(operands.result.layout), 4 * k);
  return values && *values < kTooMuch / 4 ? Parts(operands, kernels, threads).bytes : kTooMuch;
}

absl::Status RunMulMatId(const Operands& operands, Launch& launch) {
  const HostTensor& c = operands.result;
  if (ElementCount(c.layout) == 0) return absl::OkStatus();
  if (operands.source(0).extent(0) == 0) return RunReference(operands, launch);
  return ExpertProduct(operands, launch).Run();
}

}  // namespace weft::cpu
