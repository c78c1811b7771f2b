// How ranks bring a tensor from one split state into another: sums and concatenations of each
// other's tensors, and windows of what they hold.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/graph.h"
#include "coordinator/meta/rank_nodes.h"
#include "coordinator/meta/split_state.h"

namespace weft {

// A tensor on the ranks of one group.
struct RankTensors {
  SplitState state;
  std::vector<EmittedId> by_rank;  // kNothing: an empty slice
};

// `devices` by rank. `like` names what is emitted. The whole tensor has the extents `whole`.
class RankExchange {
 public:
  RankExchange(RankNodes& nodes, std::vector<int32_t> devices)
      : nodes_(nodes), devices_(std::move(devices)) {}

  // The sum of all ranks' addends, on every rank with the same bits: recursive doubling, where the
  // ranks beyond a power of two hand theirs to a partner and read its result.
  absl::StatusOr<RankTensors> Reduce(const RankTensors& addends, const Node& like);
  // All parts, in order, on every rank.
  absl::StatusOr<RankTensors> Gather(const RankTensors& parts, const Node& like);
  // Of a tensor that every rank holds, each rank's part.
  absl::StatusOr<RankTensors> Slice(const RankTensors& whole, const SplitState& wanted,
                                    const Node& like);

 private:
  int32_t ranks() const { return static_cast<int32_t>(devices_.size()); }
  // The indices [begin, end) of `source` along the axis, packed, as a node of `device`.
  absl::StatusOr<EmittedId> Window(EmittedId source, int32_t axis, IndexRange range, int32_t device,
                                   const Node& like);

  RankNodes& nodes_;
  const std::vector<int32_t> devices_;
};

}  // namespace weft
