#include "common/program/memory_owners.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {

MemoryOwners::MemoryOwners(const Program& program)
    : program_(program), graph_(program.graph), pieces_(program.slots.size()) {}

absl::Status MemoryOwners::CheckIntact(NodeId tensor) const {
  const SlotRange range = RangeOf(program_, tensor);
  const NodeId root = graph_.Root(tensor);
  if (graph_.IsLeaf(root) || range.empty()) return absl::OkStatus();
  // One owner's bytes stay one piece until another takes some of them, for good.
  const Pieces& pieces = pieces_[range.slot];
  const auto after = pieces.upper_bound(range.begin);
  if (after == pieces.begin()) return absl::InvalidArgumentError("is never written");
  const Piece& piece = std::prev(after)->second;
  if (piece.owner == root && piece.end >= range.end) return absl::OkStatus();
  const NodeId owner = piece.owner != root     ? piece.owner
                       : after == pieces.end() ? kNoNode
                                               : after->second.owner;
  return absl::InvalidArgumentError(
      owner == kNoNode ? "is never written"
                       : absl::StrCat("is overwritten by ", NodeText(graph_, owner)));
}

absl::Status MemoryOwners::CheckSources(NodeId id) const {
  const Node& node = graph_.node(id);
  const bool writes_source = GetOpInfo(node.op).writes_source;
  const SlotRange result = RangeOf(program_, writes_source ? graph_.Root(id) : id);
  for (size_t k = 0; k < node.sources.size(); ++k) {
    const NodeId source = node.sources[k];
    if (writes_source && k == 0) continue;
    const SlotRange range = RangeOf(program_, source);
    if (!range.Overlaps(result)) continue;
    // Element by element over a tensor of the same place and layout: read before it is written.
    const bool in_place = GetOpInfo(node.op).in_place && range.begin == result.begin &&
                          graph_.layout(source) == node.layout;
    if (!in_place) {
      return absl::InvalidArgumentError(absl::StrCat("writes over its source ", Index(source)));
    }
  }
  return absl::OkStatus();
}

absl::Status MemoryOwners::Write(NodeId node) {
  RETURN_IF_ERROR(CheckSources(node));
  const SlotRange range = RangeOf(program_, node);
  if (graph_.Root(node) == node && !range.empty()) Take(range, node);
  return absl::OkStatus();
}

void MemoryOwners::Take(const SlotRange& range, NodeId owner) {
  Pieces& pieces = pieces_[range.slot];
  auto piece = pieces.upper_bound(range.begin);
  if (piece != pieces.begin()) {
    const auto before = std::prev(piece);
    const Piece whole = before->second;
    if (whole.end > range.begin) {
      before->second.end = range.begin;
      if (whole.end > range.end) pieces.emplace(range.end, whole);
      if (before->first == range.begin) pieces.erase(before);
    }
  }
  piece = pieces.lower_bound(range.begin);
  while (piece != pieces.end() && piece->first < range.end) {
    const Piece whole = piece->second;
    piece = pieces.erase(piece);
    if (whole.end > range.end) pieces.emplace(range.end, whole);
  }
  pieces[range.begin] = {range.end, owner};
}

}  // namespace weft
