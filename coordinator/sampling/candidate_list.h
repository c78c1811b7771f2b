// The tokens still in the running while a chain truncates them: the first ones one by one, and what
// is known of the others. With it one chain serves for all logits, where there are no others, and
// for the candidates of a step (decision 19).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "coordinator/sampling/candidate_row.h"

namespace weft {

class CandidateList {
 public:
  // All there are, in any order.
  explicit CandidateList(std::vector<Candidate> all) : known_(std::move(all)) {}

  // `candidates` are those of `row`, with logits that changed and without those that a filter took
  // out; with `filtered` it may take out some of the rest, too.
  static CandidateList OfRow(const CandidateRow& row, std::vector<Candidate> candidates,
                             bool filtered);

  // True if there are no others. The stages of stages.h then say it all, on list().
  bool complete() const { return most_others_ == 0; }
  // The first ones. In order (Before) unless it is complete.
  std::vector<Candidate>& list() { return known_; }

  // As the stages of these names would do to all; false if it is not known what they do.
  void TopK(int32_t k);
  bool TopP(float p, size_t min_keep);
  bool MinP(float p, size_t min_keep);

 private:
  void DropOthers() { most_others_ = 0; }
  // The sum of exp(logit - that of the first) over the known ones.
  double KnownMass() const;

  std::vector<Candidate> known_;
  // Of the others, none of which is before the last known one: at most how many, no less than their
  // greatest logit, bounds of the sum of exp(logit - others_max_).
  int64_t most_others_ = 0;
  float others_max_ = -std::numeric_limits<float>::infinity();
  double least_mass_ = 0;
  double most_mass_ = 0;
};

}  // namespace weft
