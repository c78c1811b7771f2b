// How each op works on tensors that lie on several ranks: one table, a row per op (spec D.4).
//
// A rule is a pure function of a node and the states of its sources. Where it answers, running the
// op on every rank over its slices gives every rank its slice of the result.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/op.h"
#include "coordinator/meta/split_state.h"

namespace weft {

// A node, whole, and how its sources lie.
struct SplitQuestion {
  Op op = Op::kLeaf;
  const OpAttributes* attributes = nullptr;
  absl::Span<const TensorLayout> sources;
  TensorLayout result;
  absl::Span<const SplitState> states;  // of the sources
  int32_t ranks = 1;
};

struct SplitAnswer {
  SplitState result;
  // What the sources must be: as asked, or cut where they were mirrored, which costs a view.
  std::vector<SplitState> sources;
  // The source is the result on all ranks but the first, which computes: an addend that each rank
  // holds is added once.
  bool first_rank_computes = false;
};

// The rule of an op: UNIMPLEMENTED with the reason where it has none for these states. Everything
// mirrored is legal for all ops but those that commands perform.
absl::StatusOr<SplitAnswer> ApplySplitRule(const SplitQuestion& question);

// The attributes with which `rank` runs the op over its slices `local`; the rank has a part of
// every source and of the result.
OpAttributes LocalAttributes(const SplitQuestion& question, const SplitAnswer& answer,
                             absl::Span<const TensorLayout> local, int32_t rank);

// What the table says of an op, for reports and tests: "mirrored only", or the states in words.
std::string_view SplitRuleText(Op op);

}  // namespace weft
