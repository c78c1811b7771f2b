// The graph of a plan with groups of ranks in it, rank by rank: every tensor on a group becomes one
// ordinary tensor per rank, with what the ranks exchange between (decision 2).
//
// The scheduler has chosen a device for every node, some of them groups that look like one device
// (meta_device.h). Here each node on a group is run by every rank over its slices, as the split
// rules say; where a rule wants a tensor whole that is a sum or cut, the ranks reduce or gather it
// first, as late as that is possible. What comes out is scheduled again, every node pinned.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/meta/rank_exchange.h"
#include "coordinator/meta/split_state.h"
#include "coordinator/scheduler/plan.h"
#include "coordinator/scheduler/plan_context.h"
#include "coordinator/scheduler/plan_input.h"

namespace weft {

// How a weight or cache lies on the ranks of its group, and under which leaf id each rank's slice
// is bound; -1: the rank has none of it.
struct LeafSlices {
  SplitState state;
  std::vector<int32_t> ids;
};

struct RankLayout {
  // The devices without groups, in the scheduler's order.
  std::vector<Device*> devices;
  // By device of the plan: positions in `devices`, by rank; one for a plain device.
  std::vector<std::vector<int32_t>> ranks;
  std::vector<LeafSlices> weights;  // by weight id
  std::vector<LeafSlices> caches;   // by cache id
  ExchangeKind exchange = ExchangeKind::kCollectives;
  // How the ranks of each device of the plan reach each other; shorter or empty: the default.
  std::vector<LinkModels> links;
};

// How an output of the caller's graph is put together.
struct RankOutput {
  SplitState state;  // mirrored, cut or candidates
  Extents whole = {1, 1, 1, 1};
  std::vector<int32_t> parts;  // positions among the outputs, by rank; -1: none. Mirrored: the one
};

// A plan input of its own, over the graph that it holds.
struct RankGraph {
  Graph graph;
  PlanInput input;
  std::vector<RankOutput> outputs;   // by output of the caller's graph
  std::vector<std::string> remarks;  // what could not be split, and why
  int64_t split_nodes = 0;           // that ranks share: a source or the result is not mirrored
  int64_t reductions = 0;            // per step
  int64_t gathers = 0;
  int64_t choices = 0;  // that the first rank of a group makes for all, which round differently
};

// Sums travel as the plan options' wire. Errors: UNIMPLEMENTED naming op, tensor and states for
// what no rule allows even whole, and for a write into a tensor that would have to be brought
// together first; INVALID_ARGUMENT for a wire type where ranks exchange by copies; INTERNAL.
absl::StatusOr<std::unique_ptr<RankGraph>> ExpandRanks(const PlanContext& context, const Plan& plan,
                                                       const RankLayout& layout);

}  // namespace weft
