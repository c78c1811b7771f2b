// Random ways to lay a graph's leafs on ranks, and the expanded graph evaluated by the oracle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "common/device/null_device.h"
#include "coordinator/meta/meta_device.h"
#include "coordinator/meta/rank_graph.h"
#include "tests/support/host_graph.h"

namespace weft {

// Consecutive parts of [0, length) in multiples of `unit`, some of them empty.
SplitState RandomCut(Random& random, int32_t axis, int64_t length, int64_t unit, int32_t ranks);

// One group of null devices with a processor behind it, and a graph's leafs laid out on it.
class SplitRig {
 public:
  // `arithmetics` by rank, or empty: all alike.
  SplitRig(int32_t ranks, const Graph& graph, const std::vector<std::string>& arithmetics = {});

  // Lays leaf `id`, a weight or cache, out like that.
  void Lay(NodeId id, const SplitState& state);
  // Every weight and cache at random: mirrored, or cut along some axis.
  void LayAtRandom(Random& random);

  // By copies, unless told otherwise: the oracle has no communicators.
  absl::StatusOr<std::unique_ptr<RankGraph>> Expand(
      DType wire = DType::kF32, ExchangeKind exchange = ExchangeKind::kCopies) const;
  // Evaluates `expanded` with the leafs of `whole`, sliced, and puts every output together. Errors:
  // those of the oracle.
  absl::StatusOr<std::vector<std::vector<float>>> Run(const RankGraph& expanded,
                                                      const HostGraph& whole) const;
  // "weight 3 cut along 1: 0-2 2-2 2-5".
  std::string Text() const;
  int32_t ranks() const { return static_cast<int32_t>(devices_.size()); }

 private:
  void FillLeaf(const Graph& graph, NodeId id, const HostGraph& whole, HostGraph& host) const;

  const Graph& graph_;
  std::vector<std::unique_ptr<NullDevice>> devices_;
  std::unique_ptr<NullDevice> cpu_;
  std::unique_ptr<MetaDevice> meta_;
  RankLayout layout_;
  struct Slice {
    NodeId leaf = kNoNode;
    int32_t rank = 0;
  };
  std::vector<Slice> slices_;  // by id of an expanded weight or cache
};

}  // namespace weft
