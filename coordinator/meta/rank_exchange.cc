#include "coordinator/meta/rank_exchange.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// A run of the whole tensor, and where a rank has it.
struct Piece {
  int32_t rank = 0;
  IndexRange local;  // of the rank's slice
};

// Pieces that cover the axis in order; of indices that several ranks hold, the first rank's.
std::vector<Piece> PiecesOf(const SplitState& cut, int32_t ranks) {
  std::vector<Piece> pieces;
  std::vector<int64_t> before(static_cast<size_t>(ranks), 0);
  for (const CutSegment& segment : cut.segments) {
    int64_t at = segment.whole.begin;
    while (at < segment.whole.end) {
      int32_t owner = 0;
      while (segment.ranks[owner].begin > at || segment.ranks[owner].end <= at) ++owner;
      const IndexRange& range = segment.ranks[owner];
      const int64_t start = before[owner] + at - range.begin;
      pieces.push_back({owner, {start, start + range.end - at}});
      at = range.end;
    }
    for (int32_t r = 0; r < ranks; ++r) before[r] += segment.ranks[r].size();
  }
  return pieces;
}

// Whether collectives take it.
bool IsGathered(DType dtype) { return dtype == DType::kF32 || dtype == DType::kI32; }

}  // namespace

absl::Status RankExchange::Pack(std::vector<EmittedId>& by_rank, const Node& like) {
  for (int32_t r = 0; r < ranks(); ++r) {
    if (by_rank[r] == kNothing || IsContiguous(nodes_.layout(by_rank[r]))) continue;
    const CopyAttributes copy{nodes_.layout(by_rank[r]).dtype};
    ASSIGN_OR_RETURN(by_rank[r], nodes_.Make(Op::kCopy, copy, {by_rank[r]}, devices_[r], like));
  }
  return absl::OkStatus();
}

absl::StatusOr<RankTensors> RankExchange::Reduce(const RankTensors& addends, const Node& like) {
  std::vector<EmittedId> sums = addends.by_rank;
  Node named = like;
  named.name = absl::StrCat(like.name, ".sum");
  if (ranks() == 1) return RankTensors{SplitState::Mirrored(), std::move(sums)};
  RETURN_IF_ERROR(Pack(sums, named));
  const std::vector<EmittedId> packed = sums;
  if (!early_) nodes_.NextPhase();
  if (counter_ == nullptr) return ReduceByCopies(std::move(sums), named);
  const AllReduceAttributes attributes = {{counter_->next_id++, communicator_}, wire_};
  for (int32_t r = 0; r < ranks(); ++r) {
    ASSIGN_OR_RETURN(sums[r],
                     nodes_.Make(Op::kAllReduce, attributes, {sums[r]}, devices_[r], named));
  }
  if (early_) nodes_.MoveBehind(sums, packed);
  return RankTensors{SplitState::Mirrored(), std::move(sums)};
}

// In the order of collectives (SumOrder): bits do not depend on who carries the sums.
absl::StatusOr<RankTensors> RankExchange::ReduceByCopies(std::vector<EmittedId> sums,
                                                         const Node& like) {
  const auto doubling = static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(ranks())));
  const auto add = [&](int32_t rank, EmittedId other) {
    return nodes_.Make(Op::kAdd, NoAttributes{}, {sums[rank], other}, devices_[rank], like);
  };
  for (int32_t j = doubling; j < ranks(); ++j) {
    ASSIGN_OR_RETURN(sums[j - doubling], add(j - doubling, sums[j]));
  }
  for (int32_t step = 1; step < doubling; step *= 2) {
    nodes_.NextPhase();
    std::vector<EmittedId> next = sums;
    for (int32_t j = 0; j < doubling; ++j) {
      ASSIGN_OR_RETURN(next[j], add(j, sums[j ^ step]));
    }
    sums = std::move(next);
  }
  for (int32_t j = doubling; j < ranks(); ++j) sums[j] = sums[j - doubling];
  nodes_.NextPhase();
  return RankTensors{SplitState::Mirrored(), std::move(sums)};
}

absl::StatusOr<EmittedId> RankExchange::Window(EmittedId source, int32_t axis, IndexRange range,
                                               int32_t device, const Node& like) {
  const TensorLayout layout = nodes_.layout(source);
  if (range == IndexRange{0, layout.ne[axis]}) return source;
  ViewAttributes view;
  view.ne = layout.ne;
  view.nb = layout.nb;
  view.ne[axis] = range.size();
  const int64_t block = axis == 0 ? GetDTypeInfo(layout.dtype).block_elements : 1;
  if (range.begin % block != 0 || range.size() % block != 0) {
    return absl::InternalError(
        absl::StrCat("'", like.name, "': a window at ", range.begin, " cuts a block"));
  }
  // Of an empty tensor there is only the start.
  view.offset = ElementCount(view.ne) == 0 ? 0 : range.begin / block * layout.nb[axis];
  ASSIGN_OR_RETURN(const EmittedId shown, nodes_.Make(Op::kView, view, {source}, device, like));
  if (IsContiguous(nodes_.layout(shown))) return shown;
  return nodes_.Make(Op::kCopy, CopyAttributes{layout.dtype}, {shown}, device, like);
}

absl::StatusOr<RankTensors> RankExchange::Gather(const RankTensors& parts, const Node& like) {
  Node named = like;
  named.name = absl::StrCat(like.name, ".all");
  const bool one_run = parts.state.segments.size() == 1 && IsPartition(parts.state);
  if (counter_ == nullptr || !one_run || !IsGathered(like.layout.dtype)) {
    return GatherByCopies(parts, named);
  }
  return GatherAll(parts, named);
}

// A gather of one part: all ranks get it in one step. By copies they read it where it is.
absl::StatusOr<RankTensors> RankExchange::FromFirst(EmittedId first, const Node& like) {
  const size_t count = devices_.size();
  if (counter_ == nullptr || !IsGathered(like.layout.dtype)) {
    return RankTensors{SplitState::Mirrored(), std::vector<EmittedId>(count, first)};
  }
  Node named = like;
  named.name = absl::StrCat(like.name, ".first");
  std::vector<int64_t> bounds(count + 1, like.layout.ne[0]);
  bounds[0] = 0;
  RankTensors parts{CutAtBounds(0, bounds), std::vector<EmittedId>(count, kNothing)};
  parts.by_rank[0] = first;
  return GatherAll(parts, named);
}

absl::StatusOr<RankTensors> RankExchange::GatherAll(const RankTensors& parts, const Node& like) {
  AllGatherAttributes attributes;
  attributes.key = {counter_->next_id++, communicator_};
  attributes.dtype = like.layout.dtype;
  attributes.wire = like.layout.dtype;
  attributes.axis = parts.state.axis;
  attributes.ne = like.layout.ne;
  for (const IndexRange& range : parts.state.segments[0].ranks) {
    attributes.counts.push_back(range.size());
  }
  std::vector<EmittedId> packed = parts.by_rank;
  RETURN_IF_ERROR(Pack(packed, like));
  nodes_.NextPhase();
  RankTensors whole;
  for (int32_t r = 0; r < ranks(); ++r) {
    std::vector<EmittedId> sources;
    if (packed[r] != kNothing) sources.push_back(packed[r]);
    ASSIGN_OR_RETURN(const EmittedId all,
                     nodes_.Make(Op::kAllGather, attributes, sources, devices_[r], like));
    whole.by_rank.push_back(all);
  }
  return whole;
}

absl::StatusOr<RankTensors> RankExchange::GatherByCopies(const RankTensors& parts,
                                                         const Node& named) {
  const int32_t axis = parts.state.axis;
  nodes_.NextPhase();
  std::vector<EmittedId> pieces;
  for (const Piece& piece : PiecesOf(parts.state, ranks())) {
    ASSIGN_OR_RETURN(const EmittedId window, Window(parts.by_rank[piece.rank], axis, piece.local,
                                                    devices_[piece.rank], named));
    pieces.push_back(window);
  }
  nodes_.NextPhase();
  RankTensors whole;
  for (int32_t r = 0; r < ranks(); ++r) {
    EmittedId all = pieces[0];
    for (size_t p = 1; p < pieces.size(); ++p) {
      ASSIGN_OR_RETURN(all, nodes_.Make(Op::kConcat, AxisAttributes{axis}, {all, pieces[p]},
                                        devices_[r], named));
    }
    whole.by_rank.push_back(all);
  }
  nodes_.NextPhase();
  return whole;
}

absl::StatusOr<RankTensors> RankExchange::Slice(const RankTensors& whole, const SplitState& wanted,
                                                const Node& like) {
  RankTensors parts{wanted, {}};
  Node named = like;
  named.name = absl::StrCat(like.name, ".part");
  for (int32_t r = 0; r < ranks(); ++r) {
    EmittedId part = kNothing;
    for (const CutSegment& segment : wanted.segments) {
      const IndexRange range = segment.ranks[r];
      if (range.size() == 0) continue;
      ASSIGN_OR_RETURN(const EmittedId window,
                       Window(whole.by_rank[r], wanted.axis, range, devices_[r], named));
      if (part == kNothing) {
        part = window;
        continue;
      }
      ASSIGN_OR_RETURN(part, nodes_.Make(Op::kConcat, AxisAttributes{wanted.axis}, {part, window},
                                         devices_[r], named));
    }
    parts.by_rank.push_back(part);
  }
  return parts;
}

}  // namespace weft
