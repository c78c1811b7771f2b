#include "common/program/access_log.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/program/program_checks.h"

namespace weft {
namespace {

// A read of more pieces joins them, so that reading costs no more than what was written or split
// since. A joined piece keeps every access of its parts: later accesses to any of its bytes must be
// ordered after all of them.
constexpr int kMostPieces = 8;

template <typename Accesses>
absl::Status CheckOrdered(const Accesses& accesses, absl::Span<const int32_t> clock,
                          absl::string_view what) {
  for (const auto& access : accesses) {
    if (clock[access.stream] >= access.position) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "stream ", access.stream,
        access.position == 0 ? " at its start" : absl::StrCat(", command ", access.position - 1),
        " may still ", what));
  }
  return absl::OkStatus();
}

}  // namespace

SlotRange RangeOf(const Program& program, NodeId tensor) {
  const SlotPlace& place = program.places[Index(tensor)];
  return {place.slot, place.offset,
          place.offset + ByteExtent(program.graph.layout(tensor)).value_or(0)};
}

AccessLog::AccessLog(const Program& program)
    : kept_(program.slots.size()), pieces_(program.slots.size()) {
  const std::vector<int32_t> stream_of = StreamOfDevice(program);
  for (size_t i = 0; i < program.slots.size(); ++i) {
    const Slot& slot = program.slots[i];
    kept_[i] = slot.kind == SlotKind::kArena || slot.kind == SlotKind::kCrossing ||
               slot.kind == SlotKind::kCache;
    if (slot.kind != SlotKind::kCache || slot.bytes == 0) continue;
    pieces_[i][0] = {slot.bytes, {{stream_of[slot.device], 0}}, {}};
  }
}

absl::Status AccessLog::Read(const SlotRange& range, int32_t stream,
                             absl::Span<const int32_t> clock, int32_t done) {
  if (!IsKept(range)) return absl::OkStatus();
  Pieces& pieces = pieces_[range.slot];
  SplitAt(pieces, range.begin);
  SplitAt(pieces, range.end);
  FillGaps(pieces, range);
  int touched = 0;
  for (auto it = pieces.find(range.begin); it != pieces.end() && it->first < range.end; ++it) {
    RETURN_IF_ERROR(CheckOrdered(it->second.writers, clock, "write it"));
    Note({stream, done}, it->second.readers);
    ++touched;
  }
  if (touched > kMostPieces) Join(pieces, range);
  return absl::OkStatus();
}

absl::Status AccessLog::Write(const SlotRange& range, int32_t stream,
                              absl::Span<const int32_t> clock, int32_t done) {
  if (!IsKept(range)) return absl::OkStatus();
  Pieces& pieces = pieces_[range.slot];
  SplitAt(pieces, range.begin);
  SplitAt(pieces, range.end);
  auto it = pieces.lower_bound(range.begin);
  while (it != pieces.end() && it->first < range.end) {
    RETURN_IF_ERROR(CheckOrdered(it->second.writers, clock, "write there"));
    RETURN_IF_ERROR(CheckOrdered(it->second.readers, clock, "read there"));
    it = pieces.erase(it);
  }
  pieces[range.begin] = {range.end, {{stream, done}}, {}};
  return absl::OkStatus();
}

void AccessLog::Note(Access access, Accesses& accesses) {
  for (Access& known : accesses) {
    if (known.stream != access.stream) continue;
    known.position = std::max(known.position, access.position);
    return;
  }
  accesses.push_back(access);
}

void AccessLog::SplitAt(Pieces& pieces, int64_t at) {
  const auto after = pieces.upper_bound(at);
  if (after == pieces.begin()) return;
  const auto piece = std::prev(after);
  if (piece->first == at || piece->second.end <= at) return;
  pieces.emplace_hint(after, at, piece->second);
  piece->second.end = at;
}

void AccessLog::FillGaps(Pieces& pieces, const SlotRange& range) {
  int64_t at = range.begin;
  auto it = pieces.lower_bound(at);
  while (at < range.end) {
    const int64_t next = it == pieces.end() ? range.end : std::min(it->first, range.end);
    if (at < next) pieces.emplace_hint(it, at, Piece{next, {}, {}});
    if (next == range.end) return;
    at = it->second.end;
    ++it;
  }
}

void AccessLog::Join(Pieces& pieces, const SlotRange& range) {
  const auto first = pieces.find(range.begin);
  for (auto it = std::next(first); it != pieces.end() && it->first < range.end;) {
    for (const Access& access : it->second.writers) Note(access, first->second.writers);
    for (const Access& access : it->second.readers) Note(access, first->second.readers);
    it = pieces.erase(it);
  }
  first->second.end = range.end;
}

}  // namespace weft
