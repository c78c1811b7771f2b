#include "coordinator/serving/batch_former.h"

#include <algorithm>

#include "common/base/checked_math.h"

namespace weft {
namespace {

class BatchBuilder {
 public:
  explicit BatchBuilder(const BatchLimits& limits) : limits_(limits), pages_(limits.free_pages) {}

  // As many of the sequence's tokens as there is room for, at most `most`.
  void Add(int32_t position, const BatchCandidate& candidate, int64_t most) {
    int64_t tokens = std::min({candidate.remaining, most, limits_.tokens - tokens_});
    const int64_t fit = candidate.free_tokens + pages_ * limits_.page_tokens;
    if (tokens > fit) {
      choice_.short_of_pages = true;
      tokens = fit;
    }
    if (tokens <= 0) return;
    pages_ -= CeilDivide(std::max<int64_t>(tokens - candidate.free_tokens, 0), limits_.page_tokens);
    tokens_ += tokens;
    choice_.shares.push_back({position, tokens});
  }

  bool full() const { return tokens_ >= limits_.tokens; }
  BatchChoice& choice() { return choice_; }

 private:
  const BatchLimits& limits_;
  int64_t pages_;
  int64_t tokens_ = 0;
  BatchChoice choice_;
};

}  // namespace

BatchChoice FormBatch(absl::Span<const BatchCandidate> candidates, const BatchLimits& limits,
                      int64_t first) {
  BatchBuilder builder(limits);
  const auto count = static_cast<int64_t>(candidates.size());
  int64_t decoding = 0;
  for (const BatchCandidate& candidate : candidates) {
    if (candidate.remaining <= 1) ++decoding;
    if (candidate.remaining == 1 && candidate.wants_logits) builder.choice().logits = true;
  }
  const int64_t share = CeilDivide(decoding, std::max<int64_t>(limits.stages, 1));
  int64_t taken = 0;
  for (int64_t i = 0; i < count && taken < share; ++i) {
    const auto position = static_cast<int32_t>((first + i) % count);
    const BatchCandidate& candidate = candidates[position];
    if (candidate.remaining != 1 || candidate.wants_logits != builder.choice().logits) continue;
    builder.Add(position, candidate, 1);
    ++taken;
  }
  if (builder.choice().logits) return builder.choice();
  for (int32_t position = 0; position < count && !builder.full(); ++position) {
    const BatchCandidate& candidate = candidates[position];
    if (candidate.remaining > 1) builder.Add(position, candidate, limits.tokens);
  }
  return builder.choice();
}

}  // namespace weft
