#include "common/cpu/launch.h"

#include <algorithm>

namespace weft::cpu {

void Launch::Tick(int worker) {
  if (worker != 0 || !progress_) return;
  const auto now = SystemClock().Now();
  if (now - last_progress_ < std::chrono::microseconds(500)) return;
  progress_();
  last_progress_ = SystemClock().Now();
}

void Launch::ForRange(int64_t count, int64_t work, Body body) {
  if (count == 0) return;
  const int64_t unit = std::max<int64_t>(work, 1);
  // count * unit may be large for a tensor that exists, but not overflow: both are its extents.
  const bool alone = threads() == 1 || count * unit < kParallelWork;
  const int64_t least = alone ? 1 : threads() * kPiecesPerWorker;
  const int64_t pieces = std::min(std::max(count * unit / kPieceWork, least), count);
  const auto do_piece = [&](int64_t piece, int worker) {
    const Part part = PartOf(count, piece, pieces);
    body(part.first, part.last, worker);
    Tick(worker);
  };
  if (alone) {
    for (int64_t piece = 0; piece < pieces; ++piece) do_piece(piece, 0);
  } else {
    pool_.Run(pieces, do_piece, [this] { Tick(0); });
  }
}

void Launch::ForPieces(int64_t pieces, ComputePool::Task task) {
  const auto do_piece = [&](int64_t piece, int worker) {
    task(piece, worker);
    Tick(worker);
  };
  pool_.Run(pieces, do_piece, [this] { Tick(0); });
}

Format FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kFormatF32;
    case DType::kF16:
      return kFormatF16;
    case DType::kBF16:
      return kFormatBF16;
    case DType::kQ4_0:
      return kFormatQ4_0;
    case DType::kQ4_1:
      return kFormatQ4_1;
    case DType::kQ5_0:
      return kFormatQ5_0;
    case DType::kQ5_1:
      return kFormatQ5_1;
    case DType::kQ8_0:
      return kFormatQ8_0;
    case DType::kQ2_K:
      return kFormatQ2_K;
    case DType::kQ3_K:
      return kFormatQ3_K;
    case DType::kQ4_K:
      return kFormatQ4_K;
    case DType::kQ5_K:
      return kFormatQ5_K;
    case DType::kQ6_K:
      return kFormatQ6_K;
    case DType::kIQ4_NL:
      return kFormatIQ4_NL;
    case DType::kIQ4_XS:
      return kFormatIQ4_XS;
    case DType::kMXFP4:
      return kFormatMXFP4;
    default:
      return kFormatCount;
  }
}

}  // namespace weft::cpu
