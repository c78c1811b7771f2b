// How sample_candidates packs a row: F32 numbers throughout, ids and counts included, which are
// exact below 2^24.
//
// Of a row of logits it holds the best k of the ids that nobody is going to change, the logits of
// those that somebody is, and a summary of the rest. With that a sampler does what it would do with
// the whole row, after penalties or biases moved the changed ids wherever they like (decision 19).
#pragma once

#include <cstdint>

namespace weft {

// Ids and counts of a row are below this.
inline constexpr int64_t kMostCandidateIds = int64_t{1} << 24;
inline constexpr int64_t kMostChangedIds = int64_t{1} << 20;

// Words that say something about the whole row.
enum class CandidateWord : int64_t {
  kCount,      // candidates there are: k, or less where the row has not so many unchanged ids
  kNaNCount,   // logits that are not numbers; if any, there are no candidates and no rest
  kFirstNaN,   // lowest id of one, -1 if there is none
  kRestCount,  // ids that are neither candidates nor changed
  kRestMax,    // the largest of their logits; 0 if there are none
  kRestSum,    // the sum of exp(logit - kRestMax) over them; 0 if kRestMax is infinite
};
inline constexpr int64_t kCandidateHeader = 6;

// Where the words of a row lie: the header, k ids (-1 behind the last), their logits in descending
// order (equal ones by ascending id; 0 behind the last), then the logit of each changed id, 0 for
// an id that is not in this row.
struct CandidateLayout {
  int64_t k = 0;
  int64_t changed = 0;

  constexpr int64_t ids_at() const { return kCandidateHeader; }
  constexpr int64_t logits_at() const { return ids_at() + k; }
  constexpr int64_t changed_at() const { return logits_at() + k; }
  constexpr int64_t words() const { return changed_at() + changed; }
};

}  // namespace weft
