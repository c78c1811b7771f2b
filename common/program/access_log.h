// When which stream touches which bytes while a program is played: finds two accesses to the same
// bytes, one of them a write, that neither stream order nor events put in order.
//
// As FastTrack does it (Flanagan and Freund 2009): for each piece of memory the last write and the
// last read of each stream, compared with the vector clock of the next access. Any order of playing
// that the events allow finds a race if there is one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/program/program.h"

namespace weft {

// Bytes [begin, end) of a slot.
struct SlotRange {
  int32_t slot = -1;
  int64_t begin = 0;
  int64_t end = 0;
  bool empty() const { return begin == end; }
  bool Overlaps(const SlotRange& other) const {
    return slot == other.slot && begin < other.end && other.begin < end;
  }
};

// Where a tensor of a program lies. Places are valid.
SlotRange RangeOf(const Program& program, NodeId tensor);

// Keeps arenas, crossing slots and caches: what commands write. Position 0 of a stream is its
// preamble, which copies pages of caches; command i is position i + 1.
class AccessLog {
 public:
  explicit AccessLog(const Program& program);

  // Stream `stream` touches the range from position clock[stream] until `done`, mostly the same; of
  // every other stream the positions up to its entry in `clock` are certain to have finished.
  // Errors: INVALID_ARGUMENT naming the access that may happen at the same time.
  absl::Status Read(const SlotRange& range, int32_t stream, absl::Span<const int32_t> clock,
                    int32_t done);
  absl::Status Write(const SlotRange& range, int32_t stream, absl::Span<const int32_t> clock,
                     int32_t done);
  absl::Status Read(const SlotRange& range, int32_t stream, absl::Span<const int32_t> clock) {
    return Read(range, stream, clock, clock[stream]);
  }
  absl::Status Write(const SlotRange& range, int32_t stream, absl::Span<const int32_t> clock) {
    return Write(range, stream, clock, clock[stream]);
  }

 private:
  struct Access {
    int32_t stream = 0;
    int32_t position = 0;
  };
  // At most one access per stream. Several writers: those of pieces that were joined.
  using Accesses = std::vector<Access>;
  struct Piece {
    int64_t end = 0;
    Accesses writers;
    Accesses readers;
  };
  using Pieces = std::map<int64_t, Piece>;  // by first byte, disjoint

  bool IsKept(const SlotRange& range) const { return kept_[range.slot] && !range.empty(); }
  static void Note(Access access, Accesses& accesses);
  static void SplitAt(Pieces& pieces, int64_t at);
  static void FillGaps(Pieces& pieces, const SlotRange& range);
  static void Join(Pieces& pieces, const SlotRange& range);

  std::vector<bool> kept_;      // by slot
  std::vector<Pieces> pieces_;  // by slot
};

}  // namespace weft
