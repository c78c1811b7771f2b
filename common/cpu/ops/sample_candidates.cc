// The candidates of a row of logits (decision 19): two looks at the row, the first for the best
// ids, the second for the sum of the rest. One worker has a whole row and sums it in fixed chunks,
// so the result depends neither on threads nor on other rows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/checked_math.h"
#include "common/cpu/ops/ops.h"
#include "common/cpu/ops/row_index.h"
#include "common/graph/candidate_layout.h"

namespace weft::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Most blocks have no new candidate, which their maximum tells.
constexpr int64_t kBlock = 64;
// Elements of one call of exp_sum.
constexpr int64_t kChunk = 512;

struct Entry {
  float logit;
  int32_t place;  // in the row
};
bool Better(const Entry& a, const Entry& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.place < b.place;
}

// Scratch of one worker: k + 1 entries, then k + C places.
struct Scratch {
  int64_t places_at;
  int64_t bytes;

  explicit Scratch(const CandidateLayout& layout)
      : places_at(AlignUp((layout.k + 1) * static_cast<int64_t>(sizeof(Entry)), 64)),
        bytes(places_at + AlignUp((layout.k + layout.changed) * 4, 64)) {}
};

CandidateLayout LayoutOf(const Operands& operands) {
  return {operands.As<SampleCandidatesAttributes>().k,
          operands.has_source(1) ? operands.source(1).extent(0) : 0};
}

class Row {
 public:
  Row(const Operands& operands, const KernelTable& kernels, uint8_t* scratch, int64_t row)
      : kernels_(kernels),
        layout_(LayoutOf(operands)),
        first_id_(operands.As<SampleCandidatesAttributes>().first_id),
        n_(operands.source(0).extent(0)),
        x_(&operands.source(0).F32(0, row)),
        changed_(layout_.changed == 0 ? nullptr : &operands.source(1).I32(0, row)),
        y_(&operands.result.F32(0, row)),
        best_(reinterpret_cast<Entry*>(scratch)),
        places_(reinterpret_cast<int32_t*>(scratch + Scratch(layout_).places_at)) {}

  void Run() {
    std::fill(y_, y_ + layout_.words(), 0.0f);
    std::fill(y_ + layout_.ids_at(), y_ + layout_.logits_at(), -1.0f);
    Word(CandidateWord::kFirstNaN) = -1;
    if (FindNaNs()) return;
    TakeChanged();
    Select();
    StoreBest();
    if (kept_ > count_) SumRest();
  }

 private:
  float& Word(CandidateWord word) { return y_[static_cast<int64_t>(word)]; }

  bool FindNaNs() {
    int64_t count = 0;
    int64_t at = 0;
    for (; at + kBlock <= n_; at += kBlock) {
      int32_t in_block = 0;
      for (int64_t i = 0; i < kBlock; ++i) in_block += x_[at + i] != x_[at + i] ? 1 : 0;
      count += in_block;
    }
    for (; at < n_; ++at) count += std::isnan(x_[at]) ? 1 : 0;
    if (count == 0) return false;
    const float* first = std::find_if(x_, x_ + n_, [](float x) { return std::isnan(x); });
    Word(CandidateWord::kNaNCount) = static_cast<float>(count);
    Word(CandidateWord::kFirstNaN) = static_cast<float>(first_id_ + (first - x_));
    return true;
  }

  // Their logits go out; their places, each once and in order, are left aside from here on.
  void TakeChanged() {
    for (int64_t i = 0; i < layout_.changed; ++i) {
      const int64_t place = int64_t{changed_[i]} - first_id_;
      if (place < 0 || place >= n_) continue;
      y_[layout_.changed_at() + i] = x_[place];
      places_[aside_++] = static_cast<int32_t>(place);
    }
    std::sort(places_, places_ + aside_);
    aside_ = std::unique(places_, places_ + aside_) - places_;
  }

  // The best k and one more, which is the best of the rest: a heap with the worst on top.
  void Select() {
    count_ = std::min(layout_.k, n_ - aside_);
    kept_ = std::min(count_ + 1, n_ - aside_);
    int64_t size = 0;
    int64_t next = 0;  // of places_
    for (int64_t at = 0; at < n_; at += kBlock) {
      const int64_t end = std::min(at + kBlock, n_);
      if (size == kept_ && (kept_ == 0 || kernels_.max(end - at, x_ + at) <= best_[0].logit)) {
        continue;
      }
      while (next < aside_ && places_[next] < at) ++next;
      for (int64_t i = at; i < end; ++i) {
        if (next < aside_ && places_[next] == i) {
          ++next;
        } else if (size < kept_) {
          best_[size++] = {x_[i], static_cast<int32_t>(i)};
          std::push_heap(best_, best_ + size, Better);
        } else if (x_[i] > best_[0].logit) {
          std::pop_heap(best_, best_ + size, Better);
          best_[size - 1] = {x_[i], static_cast<int32_t>(i)};
          std::push_heap(best_, best_ + size, Better);
        }
      }
    }
    std::sort_heap(best_, best_ + size, Better);
  }

  void StoreBest() {
    Word(CandidateWord::kCount) = static_cast<float>(count_);
    for (int64_t i = 0; i < count_; ++i) {
      y_[layout_.ids_at() + i] = static_cast<float>(first_id_ + best_[i].place);
      y_[layout_.logits_at() + i] = best_[i].logit;
    }
  }

  void SumRest() {
    Word(CandidateWord::kRestCount) = static_cast<float>(n_ - aside_ - count_);
    const float maximum = best_[count_].logit;
    Word(CandidateWord::kRestMax) = maximum;
    if (std::isinf(maximum)) return;
    for (int64_t i = 0; i < count_; ++i) places_[aside_++] = best_[i].place;
    std::sort(places_, places_ + aside_);
    double sum = 0;
    int64_t next = 0;
    float values[kChunk];
    for (int64_t at = 0; at < n_; at += kChunk) {
      const int64_t end = std::min(at + kChunk, n_);
      const float* chunk = x_ + at;
      if (next < aside_ && places_[next] < end) {
        std::copy(x_ + at, x_ + end, values);
        for (; next < aside_ && places_[next] < end; ++next)
          values[places_[next] - at] = -kInfinity;
        chunk = values;
      }
      sum += kernels_.exp_sum(end - at, chunk, maximum, values);
    }
    Word(CandidateWord::kRestSum) = static_cast<float>(sum);
  }

  const KernelTable& kernels_;
  const CandidateLayout layout_;
  const int64_t first_id_;
  const int64_t n_;
  const float* x_;
  const int32_t* changed_;
  float* y_;
  Entry* best_;
  int32_t* places_;    // of changed ids, and later of the candidates too
  int64_t aside_ = 0;  // places
  int64_t count_ = 0;  // candidates
  int64_t kept_ = 0;   // entries of best_
};

}  // namespace

int64_t SampleCandidatesWorkspace(const Operands& operands, const KernelTable& /*kernels*/,
                                  int threads) {
  return threads * Scratch(LayoutOf(operands)).bytes;
}

absl::Status RunSampleCandidates(const Operands& operands, Launch& launch) {
  const HostTensor& x = operands.source(0);
  const int64_t bytes = Scratch(LayoutOf(operands)).bytes;
  launch.ForRange(x.extent(1), 2 * x.extent(0), [&](int64_t first, int64_t last, int worker) {
    for (int64_t row = first; row < last; ++row) {
      Row(operands, launch.kernels(), launch.workspace() + worker * bytes, row).Run();
    }
  });
  return absl::OkStatus();
}

}  // namespace weft::cpu
