// The candidates of a row of logits (decision 19), by sorting all of it.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "common/cpu/reference/evaluators.h"
#include "common/graph/candidate_layout.h"

namespace weft::reference {
namespace {

class Row {
 public:
  Row(const Operands& operands, int64_t row)
      : attributes_(operands.As<SampleCandidatesAttributes>()),
        x_(operands.source(0)),
        y_(operands.result),
        row_(row),
        layout_{attributes_.k, operands.has_source(1) ? operands.source(1).extent(0) : 0} {
    for (int64_t i = 0; i < layout_.changed; ++i) {
      changed_.push_back(int64_t{operands.source(1).I32(i, row)} - attributes_.first_id);
    }
  }

  void Evaluate() {
    for (int64_t i = 0; i < layout_.words(); ++i) y_.F32(i, row_) = 0;
    for (int64_t i = 0; i < layout_.k; ++i) y_.F32(layout_.ids_at() + i, row_) = -1;
    Word(CandidateWord::kFirstNaN) = -1;
    for (int64_t i = x_.extent(0) - 1; i >= 0; --i) {
      if (!std::isnan(Logit(i))) continue;
      Word(CandidateWord::kNaNCount) += 1;
      Word(CandidateWord::kFirstNaN) = static_cast<float>(attributes_.first_id + i);
    }
    if (Word(CandidateWord::kNaNCount) > 0) return;
    StoreChanged();
    StoreOthers();
  }

 private:
  float& Word(CandidateWord word) { return y_.F32(static_cast<int64_t>(word), row_); }
  float Logit(int64_t i) const { return x_.F32(i, row_); }
  bool InRow(int64_t i) const { return i >= 0 && i < x_.extent(0); }

  void StoreChanged() {
    for (int64_t i = 0; i < layout_.changed; ++i) {
      if (InRow(changed_[i])) y_.F32(layout_.changed_at() + i, row_) = Logit(changed_[i]);
    }
  }

  void StoreOthers() {
    const std::set<int64_t> changed(changed_.begin(), changed_.end());
    std::vector<int64_t> order;
    for (int64_t i = 0; i < x_.extent(0); ++i) {
      if (changed.count(i) == 0) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return Logit(a) > Logit(b); });
    const auto count = std::min<int64_t>(layout_.k, static_cast<int64_t>(order.size()));
    for (int64_t i = 0; i < count; ++i) {
      y_.F32(layout_.ids_at() + i, row_) = static_cast<float>(attributes_.first_id + order[i]);
      y_.F32(layout_.logits_at() + i, row_) = Logit(order[i]);
    }
    Word(CandidateWord::kCount) = static_cast<float>(count);
    order.erase(order.begin(), order.begin() + count);
    if (order.empty()) return;
    const double maximum = Logit(order[0]);
    double sum = 0;
    for (const int64_t i : order) sum += std::isinf(maximum) ? 0 : std::exp(Logit(i) - maximum);
    Word(CandidateWord::kRestCount) = static_cast<float>(order.size());
    Word(CandidateWord::kRestMax) = static_cast<float>(maximum);
    Word(CandidateWord::kRestSum) = static_cast<float>(sum);
  }

  const SampleCandidatesAttributes& attributes_;
  const HostTensor& x_;
  const HostTensor& y_;
  const int64_t row_;
  const CandidateLayout layout_;
  std::vector<int64_t> changed_;  // as positions of the row, which some may not be
};

}  // namespace

absl::Status SampleCandidates(const Operands& operands) {
  for (int64_t row = 0; row < operands.source(0).extent(1); ++row) Row(operands, row).Evaluate();
  return absl::OkStatus();
}

}  // namespace weft::reference
