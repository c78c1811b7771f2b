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
  const int64_t unit = std::max<int64_t>(work, 1);
  const int64_t piece = std::max<int64_t>(kPieceWork / unit, 1);
  const auto walk = [&](Share share, int worker) {
    for (int64_t first = share.first; first < share.last; first += piece) {
      body(first, std::min(first + piece, share.last), worker);
      Tick(worker);
    }
  };
  // count * unit may be large for a tensor that exists, but not overflow: both are its extents.
  if (threads() == 1 || count < 2 || count * unit < kParallelWork) {
    walk({0, count}, 0);
    return;
  }
  OnAllWorkers([&](int worker) { walk(ShareOf(count, worker, threads()), worker); });
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
