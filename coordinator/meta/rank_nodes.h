// The nodes of a rank graph while it grows: emitted node by node of the whole graph, listed in the
// end so that what one rank does between two exchanges stands together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/graph.h"

namespace weft {

// A node that was emitted; not its id in the finished graph.
enum class EmittedId : int32_t {};
inline constexpr EmittedId kNothing{-1};

class RankNodes {
 public:
  // A leaf that no device is chosen for (an input) has device -1.
  EmittedId Leaf(LeafAttributes attributes, const TensorLayout& layout, int32_t device,
                 std::string name);
  // The result's layout follows from the sources. `like` gives layer and name. Errors: as
  // InferResult.
  absl::StatusOr<EmittedId> Make(Op op, OpAttributes attributes,
                                 absl::Span<const EmittedId> sources, int32_t device,
                                 const Node& like);

  const TensorLayout& layout(EmittedId id) const { return At(id).node.layout; }
  int32_t device(EmittedId id) const { return At(id).device; }
  void MarkOutput(EmittedId id) { nodes_[static_cast<size_t>(id)].node.output = true; }
  bool is_output(EmittedId id) const { return At(id).node.output; }
  // What is made from here on stands behind everything made so far.
  void NextPhase() { ++phase_; }
  // `moved` stand on their devices right behind what stands there up to the last of `sources`,
  // whatever was made in between; what is moved there later, behind them.
  void MoveBehind(absl::Span<const EmittedId> moved, absl::Span<const EmittedId> sources);

  // The graph, and by emitted node its id there.
  struct Finished {
    Graph graph;
    std::vector<NodeId> ids;
    std::vector<int32_t> devices;  // by node of the graph
  };
  Finished Finish() const;

 private:
  struct Emitted {
    Node node;  // sources and root are emitted ids
    int32_t device = -1;
    int32_t phase = 0;
    int32_t position = 0;  // in the phase: when it was made, or that of what it stands behind
  };
  const Emitted& At(EmittedId id) const { return nodes_[static_cast<size_t>(id)]; }

  std::vector<Emitted> nodes_;
  int32_t phase_ = 0;
};

}  // namespace weft
