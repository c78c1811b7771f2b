#include "coordinator/sampling/candidate_row.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/candidate_layout.h"

namespace weft {
namespace {

// Sums are in F32: this far they may be from what is possible.
constexpr double kSumSlack = 1.001;

absl::Status Bad(const char* what, double value) {
  return absl::InternalError(absl::StrCat("the step returned bad candidates: ", what, " ", value));
}

class Reader {
 public:
  Reader(const CandidateRequest& request, absl::Span<const float> words)
      : request_(request), layout_{request.k, request.padded_changed}, words_(words) {}

  absl::StatusOr<CandidateRow> Read() {
    if (static_cast<int64_t>(words_.size()) != layout_.words() ||
        static_cast<int64_t>(request_.changed.size()) > layout_.changed) {
      return Bad("words", static_cast<double>(words_.size()));
    }
    row_.first_id = request_.first_id;
    row_.ids = request_.ids;
    RETURN_IF_ERROR(ReadNaNs());
    if (row_.nan_count > 0) return std::move(row_);
    RETURN_IF_ERROR(ReadChanged());
    RETURN_IF_ERROR(ReadBest());
    RETURN_IF_ERROR(ReadRest());
    return std::move(row_);
  }

 private:
  float Word(CandidateWord word) const { return words_[static_cast<size_t>(word)]; }
  int64_t end() const { return request_.first_id + request_.ids; }
  int64_t unchanged() const { return request_.ids - static_cast<int64_t>(row_.changed.size()); }

  // Whether it is an integer of [low, high].
  static bool IsWhole(double value, int64_t low, int64_t high) {
    return value >= static_cast<double>(low) && value <= static_cast<double>(high) &&
           static_cast<double>(static_cast<int64_t>(value)) == value;
  }
  static absl::StatusOr<int64_t> Whole(const char* what, float word, int64_t low, int64_t high) {
    if (!IsWhole(word, low, high)) return Bad(what, word);
    return static_cast<int64_t>(word);
  }

  absl::Status ReadNaNs() {
    ASSIGN_OR_RETURN(row_.nan_count,
                     Whole("NaN count", Word(CandidateWord::kNaNCount), 0, request_.ids));
    const bool any = row_.nan_count > 0;
    ASSIGN_OR_RETURN(const int64_t first,
                     Whole("first NaN", Word(CandidateWord::kFirstNaN),
                           any ? request_.first_id : -1, any ? end() - 1 : -1));
    row_.first_nan = static_cast<int32_t>(first);
    return absl::OkStatus();
  }

  absl::Status ReadChanged() {
    for (size_t i = 0; i < request_.changed.size(); ++i) {
      const int32_t id = request_.changed[i];
      if (id < request_.first_id || id >= end() || !changed_ids_.insert(id).second) continue;
      const float logit = words_[static_cast<size_t>(layout_.changed_at()) + i];
      if (std::isnan(logit)) return Bad("logit of changed id", id);
      row_.changed.push_back({id, logit});
    }
    std::sort(row_.changed.begin(), row_.changed.end(),
              [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
    return absl::OkStatus();
  }

  absl::Status ReadBest() {
    const int64_t want = std::min(layout_.k, unchanged());
    ASSIGN_OR_RETURN(const int64_t count, Whole("count", Word(CandidateWord::kCount), want, want));
    row_.best.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const float id = words_[layout_.ids_at() + i];
      if (!IsWhole(id, request_.first_id, end() - 1)) return Bad("id", id);
      const Candidate next = {static_cast<int32_t>(id), words_[layout_.logits_at() + i]};
      if (std::isnan(next.logit)) return Bad("logit of id", next.id);
      const bool in_order = row_.best.empty() || Before(row_.best.back(), next);
      const bool twice = !changed_ids_.empty() && changed_ids_.contains(next.id);
      if (!in_order || twice) return Bad("order at id", next.id);
      row_.best.push_back(next);
    }
    return absl::OkStatus();
  }

  absl::Status ReadRest() {
    const int64_t want = unchanged() - static_cast<int64_t>(row_.best.size());
    ASSIGN_OR_RETURN(row_.rest_count, Whole("rest", Word(CandidateWord::kRestCount), want, want));
    if (want == 0) return absl::OkStatus();
    row_.rest_max = Word(CandidateWord::kRestMax);
    row_.rest_sum = Word(CandidateWord::kRestSum);
    if (row_.best.empty() || !(row_.rest_max <= row_.best.back().logit)) {
      return Bad("maximum of the rest", row_.rest_max);
    }
    const double sum = row_.rest_sum;
    const bool possible =
        std::isinf(row_.rest_max)
            ? sum == 0
            : sum * kSumSlack >= 1 && sum <= static_cast<double>(want) * kSumSlack;
    return possible ? absl::OkStatus() : Bad("sum of the rest", sum);
  }

  const CandidateRequest& request_;
  const CandidateLayout layout_;
  const absl::Span<const float> words_;
  absl::flat_hash_set<int32_t> changed_ids_;
  CandidateRow row_;
};

}  // namespace

absl::StatusOr<CandidateRow> ReadCandidateRow(const CandidateRequest& request,
                                              absl::Span<const float> words) {
  return Reader(request, words).Read();
}

CandidateRow MergeCandidateRows(absl::Span<const CandidateRow> parts, int64_t k) {
  CandidateRow whole;
  whole.first_id = parts[0].first_id;
  for (const CandidateRow& part : parts) {
    whole.ids += part.ids;
    if (whole.nan_count == 0) whole.first_nan = part.first_nan;
    whole.nan_count += part.nan_count;
    whole.best.insert(whole.best.end(), part.best.begin(), part.best.end());
    whole.changed.insert(whole.changed.end(), part.changed.begin(), part.changed.end());
    whole.rest_count += part.rest_count;
    whole.rest_max = std::max(whole.rest_max, part.rest_max);
  }
  if (whole.nan_count > 0) {
    CandidateRow bad;
    bad.first_id = whole.first_id;
    bad.ids = whole.ids;
    bad.nan_count = whole.nan_count;
    bad.first_nan = whole.first_nan;
    return bad;
  }
  std::sort(whole.best.begin(), whole.best.end(), Before);
  const auto keep = std::min<size_t>(static_cast<size_t>(k), whole.best.size());
  const absl::Span<const Candidate> dropped = absl::MakeConstSpan(whole.best).subspan(keep);
  if (!dropped.empty()) whole.rest_max = std::max(whole.rest_max, dropped[0].logit);
  if (!std::isinf(whole.rest_max)) {
    double sum = 0;
    for (const CandidateRow& part : parts) {
      sum += part.rest_sum * std::exp(double{part.rest_max} - whole.rest_max);
    }
    for (const Candidate& one : dropped) sum += std::exp(double{one.logit} - whole.rest_max);
    whole.rest_sum = static_cast<float>(sum);
  }
  whole.rest_count += static_cast<int64_t>(dropped.size());
  whole.best.resize(keep);
  return whole;
}

}  // namespace weft
