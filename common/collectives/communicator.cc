#include "common/collectives/communicator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/collectives/wire_format.h"

namespace weft {
namespace {

constexpr size_t kMostShapes = 64;

CollectiveShape ShapeOf(CollectiveKind kind, const std::vector<int32_t>& hosts) {
  CollectiveShape shape;
  shape.kind = kind;
  shape.hosts = hosts;
  return shape;
}

}  // namespace

absl::Status Communicator::AllReduce(absl::Span<float> values, CollectiveAlgorithm algorithm,
                                     DType wire, const CollectiveCall& call) {
  CollectiveShape shape = ShapeOf(CollectiveKind::kAllReduce, hosts());
  shape.algorithm = algorithm;
  shape.elements = static_cast<int64_t>(values.size());
  return Run(shape, wire, values, call);
}

absl::Status Communicator::AllGather(absl::Span<const int64_t> counts, absl::Span<float> values,
                                     DType wire, const CollectiveCall& call) {
  CollectiveShape shape = ShapeOf(CollectiveKind::kAllGather, hosts());
  shape.counts.assign(counts.begin(), counts.end());
  return Run(shape, wire, values, call);
}

absl::Status Communicator::ReduceScatter(absl::Span<const int64_t> counts, absl::Span<float> values,
                                         DType wire, const CollectiveCall& call) {
  CollectiveShape shape = ShapeOf(CollectiveKind::kReduceScatter, hosts());
  shape.counts.assign(counts.begin(), counts.end());
  return Run(shape, wire, values, call);
}

absl::Status Communicator::Broadcast(int32_t root, absl::Span<float> values, DType wire,
                                     const CollectiveCall& call) {
  CollectiveShape shape = ShapeOf(CollectiveKind::kBroadcast, hosts());
  shape.root = root;
  shape.elements = static_cast<int64_t>(values.size());
  return Run(shape, wire, values, call);
}

absl::Status ScheduledCommunicator::Run(const CollectiveShape& shape, DType wire,
                                        absl::Span<float> values, const CollectiveCall& call) {
  const bool parts =
      shape.kind == CollectiveKind::kAllGather || shape.kind == CollectiveKind::kReduceScatter;
  if (shape.hosts.size() != hosts_.size() || shape.root < 0 || shape.root >= size() ||
      (parts && shape.counts.size() != hosts_.size()) ||
      std::any_of(shape.counts.begin(), shape.counts.end(), [](int64_t n) { return n < 0; })) {
    return absl::InvalidArgumentError(
        absl::StrCat("a collective of other ranks than the ", size(), " of this communicator"));
  }
  if (!IsWireType(wire) || shape.TotalElements() != static_cast<int64_t>(values.size())) {
    return absl::InvalidArgumentError(absl::StrCat("a vector of ", values.size(),
                                                   " elements, want ", shape.TotalElements(),
                                                   ", or an unknown wire type"));
  }
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const Known& known) { return known.shape == shape; });
  if (found != known_.end()) return RunRounds(found->rounds, wire, values, link_, call, scratch_);
  if (known_.size() == kMostShapes) known_.clear();
  CollectiveSchedule schedule = MakeSchedule(shape);
  known_.push_back({shape, std::move(schedule.ranks[rank_])});
  return RunRounds(known_.back().rounds, wire, values, link_, call, scratch_);
}

}  // namespace weft
