// The stages of a sampler, each a pure function on candidates that none but it knows of (spec J.2).
// Logits may be -infinity, which no stage chooses; NaN and +infinity do not come here. Lists are
// never emptied.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/sampling/candidate_row.h"
#include "coordinator/sampling/dry.h"
#include "coordinator/sampling/sampler_options.h"

namespace weft {

// --- Changes of logits: candidates by ascending id; ids that are not among them are ignored ---

void ApplyBias(absl::Span<const TokenBias> biases, std::vector<Candidate>& candidates);
// logit <= 0 ? logit * repeat : logit / repeat, then minus count * frequency + presence, for each
// distinct token of `recent`.
void ApplyPenalties(const SamplerOptions& options, absl::Span<const int32_t> recent,
                    std::vector<Candidate>& candidates);
void ApplyDry(absl::Span<const DryPenalty> penalties, std::vector<Candidate>& candidates);

// --- Truncation. Candidates in order (Before), unless said otherwise ---

// Logits below maximum - n * deviation become -infinity; the deviation is that of the population of
// finite logits. Any order.
void CutTopNSigma(float n, std::vector<Candidate>& candidates);
// The k largest, put in order. Any order.
void KeepTopK(int32_t k, std::vector<Candidate>& candidates);
// The shortest prefix by closeness of surprise to entropy whose mass exceeds p; in that order.
void KeepTypical(float p, size_t min_keep, std::vector<Candidate>& candidates);
// The shortest prefix whose probabilities reach p.
void KeepTopP(float p, size_t min_keep, std::vector<Candidate>& candidates);
// The least logit that min-p keeps.
float LeastOfMinP(float p, float maximum);
// Logits of at least maximum + ln(p).
void KeepMinP(float p, size_t min_keep, std::vector<Candidate>& candidates);
// Of the candidates with a probability of at least `threshold` only the last, if that leaves
// min_keep.
void ExcludeTopChoices(float threshold, size_t min_keep, std::vector<Candidate>& candidates);

// --- Temperature and draw ---

// logit / temperature; temperature > 0.
void ApplyTemperature(float temperature, std::vector<Candidate>& candidates);
// The temperature of [temperature - range, temperature + range], >= 0, by the entropy of the
// candidates as a share of the largest possible one, to the power of `exponent`. One candidate:
// `temperature`.
float DynamicTemperature(float temperature, float range, float exponent,
                         absl::Span<const Candidate> candidates);
// Index of the first candidate at which the cumulative softmax reaches `uniform` in [0, 1).
size_t DrawFromSoftmax(absl::Span<const Candidate> candidates, double uniform);

struct Softmax {
  std::vector<double> weights;  // exp(logit - maximum), in order; 0 for -infinity
  double total = 0;             // their sum
};
Softmax SoftmaxOf(absl::Span<const Candidate> candidates);
// Of the distribution, in nats.
double EntropyOf(const Softmax& softmax);

// --- Mirostat: candidates in order ---

// How many version 1 keeps: by the exponent of Zipf's law as seen in the first 100.
// Source: Basu et al. 2021, arXiv:2007.14966.
size_t CountOfMirostat1(float mu, absl::Span<const Candidate> candidates);
// How many version 2 keeps: those with a surprise of at most mu bits, at least 1.
size_t CountOfMirostat2(float mu, absl::Span<const Candidate> candidates);

}  // namespace weft
