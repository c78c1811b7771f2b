// Changes of single logits: bias, repetition penalties, DRY.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "coordinator/sampling/stages.h"

namespace weft {
namespace {

// The candidate with that id, or null.
Candidate* Find(int32_t id, std::vector<Candidate>& candidates) {
  const auto at = std::lower_bound(candidates.begin(), candidates.end(), id,
                                   [](const Candidate& c, int32_t x) { return c.id < x; });
  return at != candidates.end() && at->id == id ? &*at : nullptr;
}

}  // namespace

void ApplyBias(absl::Span<const TokenBias> biases, std::vector<Candidate>& candidates) {
  for (const TokenBias& bias : biases) {
    if (Candidate* const candidate = Find(bias.id, candidates)) candidate->logit += bias.bias;
  }
}

void ApplyPenalties(const SamplerOptions& options, absl::Span<const int32_t> recent,
                    std::vector<Candidate>& candidates) {
  absl::flat_hash_map<int32_t, int32_t> counts;
  for (const int32_t token : recent) ++counts[token];
  for (const auto& [id, count] : counts) {
    Candidate* const candidate = Find(id, candidates);
    if (candidate == nullptr) continue;
    candidate->logit = candidate->logit <= 0 ? candidate->logit * options.repeat_penalty
                                             : candidate->logit / options.repeat_penalty;
    candidate->logit -=
        static_cast<float>(count) * options.frequency_penalty + options.presence_penalty;
  }
}

void ApplyDry(absl::Span<const DryPenalty> penalties, std::vector<Candidate>& candidates) {
  for (const DryPenalty& penalty : penalties) {
    if (Candidate* const candidate = Find(penalty.id, candidates)) {
      candidate->logit -= penalty.penalty;
    }
  }
}

}  // namespace weft
