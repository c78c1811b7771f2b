// Whose bytes lie where while a program is played: finds tensors that are overwritten before their
// last reader, which neither bounds nor data flow show.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/program/program.h"

namespace weft {

// Takes reads and writes in an order that the program's events allow. Any such order will do:
// accesses from two streams that touch the same bytes must be ordered by events. Places are valid.
class MemoryOwners {
 public:
  explicit MemoryOwners(const Program& program);

  // Command `position` of `stream` reads the tensor. Errors: INVALID_ARGUMENT if another was
  // written over it.
  absl::Status Read(NodeId tensor, int32_t stream, int32_t position);
  // The node's result (or the tensor that it changes) is written by a stream for which the
  // positions of `clock` are certain to have finished. Errors: INVALID_ARGUMENT if it lies over one
  // of the node's sources, other than where the op may run in place, or if a reader on another
  // device may not be done.
  absl::Status Write(NodeId node, absl::Span<const int32_t> clock);
  // INVALID_ARGUMENT if another tensor was written over this one.
  absl::Status CheckIntact(NodeId tensor) const;

 private:
  struct Range {
    int32_t slot = -1;
    int64_t begin = 0;
    int64_t end = 0;
  };
  struct Piece {
    int64_t end = 0;
    NodeId owner = kNoNode;
  };
  struct Reader {
    int32_t stream = 0;
    int32_t position = 0;
  };
  using Pieces = std::map<int64_t, Piece>;  // by first byte, disjoint

  Range RangeOf(NodeId tensor) const;
  absl::Status CheckSources(NodeId node) const;
  absl::Status CheckReaders(NodeId root, absl::Span<const int32_t> clock) const;
  void Take(const Range& range, NodeId owner);

  const Program& program_;
  const Graph& graph_;
  std::vector<Pieces> pieces_;                // of each slot; arenas only
  std::vector<std::vector<Reader>> readers_;  // of each root, on other devices than its own
};

}  // namespace weft
