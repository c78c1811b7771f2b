#include "common/program/memory_owners.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {

MemoryOwners::MemoryOwners(const Program& program)
    : program_(program),
      graph_(program.graph),
      pieces_(program.slots.size()),
      readers_(program.graph.nodes().size()) {}

MemoryOwners::Range MemoryOwners::RangeOf(NodeId tensor) const {
  const SlotPlace& place = program_.places[Index(tensor)];
  return {place.slot, place.offset, place.offset + ByteExtent(graph_.layout(tensor)).value_or(0)};
}

absl::Status MemoryOwners::CheckIntact(NodeId tensor) const {
  const Range range = RangeOf(tensor);
  const NodeId root = graph_.Root(tensor);
  if (graph_.IsLeaf(root) || range.begin == range.end) return absl::OkStatus();
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

absl::Status MemoryOwners::Read(NodeId tensor, int32_t stream, int32_t position) {
  RETURN_IF_ERROR(CheckIntact(tensor));
  const Slot& slot = program_.slots[program_.places[Index(tensor)].slot];
  if (program_.streams[stream].device == slot.device || slot.kind == SlotKind::kWeight) {
    return absl::OkStatus();
  }
  std::vector<Reader>& readers = readers_[Index(graph_.Root(tensor))];
  for (Reader& reader : readers) {
    if (reader.stream != stream) continue;
    reader.position = std::max(reader.position, position);
    return absl::OkStatus();
  }
  readers.push_back({stream, position});
  return absl::OkStatus();
}

absl::Status MemoryOwners::CheckSources(NodeId id) const {
  const Node& node = graph_.node(id);
  const bool writes_source = GetOpInfo(node.op).writes_source;
  const Range result = RangeOf(writes_source ? graph_.Root(id) : id);
  for (size_t k = 0; k < node.sources.size(); ++k) {
    const NodeId source = node.sources[k];
    if (writes_source && k == 0) continue;
    const Range range = RangeOf(source);
    const bool overlaps =
        range.slot == result.slot && range.begin < result.end && result.begin < range.end;
    if (!overlaps) continue;
    // Element by element over a tensor of the same place and layout: read before it is written.
    const bool in_place = GetOpInfo(node.op).in_place && range.begin == result.begin &&
                          graph_.layout(source) == node.layout;
    if (!in_place) {
      return absl::InvalidArgumentError(absl::StrCat("writes over its source ", Index(source)));
    }
  }
  return absl::OkStatus();
}

absl::Status MemoryOwners::CheckReaders(NodeId root, absl::Span<const int32_t> clock) const {
  for (const Reader& reader : readers_[Index(root)]) {
    if (clock[reader.stream] >= reader.position) continue;
    return absl::InvalidArgumentError(absl::StrCat("writes over ", NodeText(graph_, root),
                                                   ", which stream ", reader.stream,
                                                   " may still read"));
  }
  return absl::OkStatus();
}

absl::Status MemoryOwners::Write(NodeId node, absl::Span<const int32_t> clock) {
  RETURN_IF_ERROR(CheckSources(node));
  if (graph_.Root(node) != node) return CheckReaders(graph_.Root(node), clock);
  const Range range = RangeOf(node);
  if (range.begin == range.end) return absl::OkStatus();
  const Pieces& pieces = pieces_[range.slot];
  auto piece = pieces.upper_bound(range.begin);
  if (piece != pieces.begin()) --piece;
  for (; piece != pieces.end() && piece->first < range.end; ++piece) {
    if (piece->second.end <= range.begin) continue;
    RETURN_IF_ERROR(CheckReaders(piece->second.owner, clock));
  }
  Take(range, node);
  return absl::OkStatus();
}

void MemoryOwners::Take(const Range& range, NodeId owner) {
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
