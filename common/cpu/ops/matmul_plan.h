// How the products divide their work. None of it changes a bit of the result: kernels sum every
// element in one order, whatever the tile.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/checked_math.h"

namespace weft::cpu {

// Rows of a weight matrix that stay together: the kernels work on panels of so many.
inline constexpr int64_t kGranuleRows = 16;

// Tiles that keep the columns in the second-level cache and one call below a millisecond.
struct TilePlan {
  int64_t rows;     // a multiple of kGranuleRows
  int64_t columns;  // of one call

  TilePlan(int64_t k, int64_t column_bytes, int64_t column_count) {
    constexpr int64_t kCacheBytes = int64_t{192} << 10;
    constexpr int64_t kProducts = int64_t{1} << 23;
    const int64_t fitting = kCacheBytes / std::max<int64_t>(column_bytes, 1);
    columns = std::clamp<int64_t>(column_count, 1, std::max<int64_t>(fitting, 16));
    const int64_t row_products = std::max<int64_t>(k, 1) * columns;
    rows = std::max<int64_t>(kProducts / row_products / kGranuleRows, 1) * kGranuleRows;
  }
};

// Pieces to cut a product into: small enough to move to another worker, at most one per unit.
inline int64_t PieceCount(double products, int64_t units, int threads) {
  constexpr double kPieceProducts = 1 << 24;
  const int64_t least = int64_t{threads} * 4;
  const auto wanted = static_cast<int64_t>(std::min(products / kPieceProducts, 1e6));
  return std::clamp<int64_t>(wanted, std::min(least, units), std::max<int64_t>(units, 1));
}

// Below so many products (multiply-adds) worker 0 works alone.
inline constexpr int64_t kParallelProducts = 1 << 18;

}  // namespace weft::cpu
