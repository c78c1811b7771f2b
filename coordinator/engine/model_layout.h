// How the weights and caches of a model are cut over the ranks of a group, by role (spec D.8,
// decision 17): heads and feed-forward columns within a layer, the vocabulary at both ends.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/meta/split_state.h"
#include "coordinator/models/model.h"

namespace weft {

struct ModelLayout {
  std::vector<SplitState> weights;  // by weight id
  std::vector<SplitState> caches;   // by cache id: pages [head, 16, n_head, pages], cut by heads
};

// `shares` by rank, >= 0; all zero: equal parts. A pure function of its arguments. Errors:
// INVALID_ARGUMENT for no ranks, and as CheckShares.
absl::StatusOr<ModelLayout> LayOutModel(const Model& model, absl::Span<const double> shares);

}  // namespace weft
