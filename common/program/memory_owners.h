// Whose bytes lie where while a program is played: finds tensors that are overwritten before their
// last reader, which neither bounds nor data flow show.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "common/program/access_log.h"
#include "common/program/program.h"

namespace weft {

// Takes writes in an order that the program's events allow. Any such order will do where AccessLog
// finds no race. Places are valid.
class MemoryOwners {
 public:
  explicit MemoryOwners(const Program& program);

  // The node's result (or the tensor that it changes) is written. Errors: INVALID_ARGUMENT if it
  // lies over one of the node's sources, other than where the op may run in place.
  absl::Status Write(NodeId node);
  // INVALID_ARGUMENT if another tensor was written over this one.
  absl::Status CheckIntact(NodeId tensor) const;

 private:
  struct Piece {
    int64_t end = 0;
    NodeId owner = kNoNode;
  };
  using Pieces = std::map<int64_t, Piece>;  // by first byte, disjoint

  absl::Status CheckSources(NodeId node) const;
  void Take(const SlotRange& range, NodeId owner);

  const Program& program_;
  const Graph& graph_;
  std::vector<Pieces> pieces_;  // of each slot; empty for those that are bound
};

}  // namespace weft
