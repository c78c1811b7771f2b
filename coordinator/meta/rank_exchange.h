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

// How ranks exchange.
enum class ExchangeKind : uint8_t {
  kCollectives,  // commands that communicators perform
  kCopies,       // copies and adds in the graph, for any devices
};

// The collectives of a graph, numbered.
struct CollectiveCounter {
  int32_t next_id = 0;
};

// `devices` by rank. `like` is the node of the whole graph: its name and layout.
class RankExchange {
 public:
  RankExchange(RankNodes& nodes, std::vector<int32_t> devices)
      : nodes_(nodes), devices_(std::move(devices)) {}

  // From now on by collectives of that communicator, where they can; sums travel as `wire`. Early
  // ones begin where their addends are there, not where the sum is first asked for. `counter`
  // outlives this.
  void UseCollectives(int32_t communicator, DType wire, bool early, CollectiveCounter& counter) {
    communicator_ = communicator;
    wire_ = wire;
    early_ = early;
    counter_ = &counter;
  }

  // The sum of all ranks' addends, on every rank with the same bits. By copies: recursive doubling,
  // where the ranks beyond a power of two hand theirs to a partner and read its result.
  absl::StatusOr<RankTensors> Reduce(const RankTensors& addends, const Node& like);
  // All parts, in order, on every rank.
  absl::StatusOr<RankTensors> Gather(const RankTensors& parts, const Node& like);
  // What the first rank alone has, on every rank.
  absl::StatusOr<RankTensors> FromFirst(EmittedId first, const Node& like);
  // Of a tensor that every rank holds, each rank's part.
  absl::StatusOr<RankTensors> Slice(const RankTensors& whole, const SplitState& wanted,
                                    const Node& like);

 private:
  // Copies what has gaps.
  absl::Status Pack(std::vector<EmittedId>& by_rank, const Node& like);
  absl::StatusOr<RankTensors> ReduceByCopies(std::vector<EmittedId> sums, const Node& like);
  absl::StatusOr<RankTensors> GatherByCopies(const RankTensors& parts, const Node& like);
  absl::StatusOr<RankTensors> GatherAll(const RankTensors& parts, const Node& like);
  int32_t ranks() const { return static_cast<int32_t>(devices_.size()); }
  // The indices [begin, end) of `source` along the axis, packed, as a node of `device`.
  absl::StatusOr<EmittedId> Window(EmittedId source, int32_t axis, IndexRange range, int32_t device,
                                   const Node& like);

  RankNodes& nodes_;
  const std::vector<int32_t> devices_;
  int32_t communicator_ = 0;
  DType wire_ = DType::kF32;
  bool early_ = false;
  CollectiveCounter* counter_ = nullptr;  // null: by copies
};

}  // namespace weft
