#include "coordinator/explain/explain_collectives.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "common/collectives/wire_format.h"
#include "common/program/collective_runner.h"

namespace weft {
namespace {

class CollectivesMaker {
 public:
  CollectivesMaker(const PlanContext& context, absl::Span<const ExplainGroup> groups,
                   ExplainPhase& phase)
      : context_(context), groups_(groups), phase_(phase) {}

  void Make() {
    for (const PlanCommunicator& ranks : context_.input().communicators) {
      first_traffic_.push_back(phase_.rank_traffic.size());
      for (const int32_t device : ranks) phase_.rank_traffic.push_back({device, 0, 0});
    }
    std::set<int32_t> seen;  // ids; each is a node on every rank
    for (const Node& node : context_.graph().nodes()) {
      const CollectiveKey* key = CollectiveKeyOf(node);
      if (key != nullptr && seen.insert(key->id).second) Add(node, key->communicator);
    }
  }

 private:
  using Alike = std::tuple<int32_t, CollectiveKind, DType, int64_t, std::vector<int64_t>>;

  void Add(const Node& node, int32_t communicator) {
    const CollectiveShape shape =
        CollectiveShapeOf(node, context_.AlgorithmOf(node), context_.HostsOf(communicator));
    const DType wire = CollectiveWireOf(node);
    const auto [at, fresh] = position_.emplace(
        Alike{communicator, shape.kind, wire, shape.TotalElements(), shape.counts},
        phase_.collectives.size());
    if (fresh) phase_.collectives.push_back(Describe(shape, wire, communicator));
    ++phase_.collectives[at->second].count;
    const std::vector<ExplainRankTraffic>& sends = sends_[at->second];
    for (size_t r = 0; r < sends.size(); ++r) {
      ExplainRankTraffic& rank = phase_.rank_traffic[first_traffic_[communicator] + r];
      rank.messages += sends[r].messages;
      rank.bytes += sends[r].bytes;
    }
  }

  // Also notes what each rank sends in it.
  ExplainCollective Describe(const CollectiveShape& shape, DType wire, int32_t communicator) {
    ExplainCollective shown;
    shown.group = GroupName(context_.input().communicators[communicator]);
    shown.kind = shape.kind;
    shown.algorithm = shape.algorithm;
    shown.wire = wire;
    shown.elements = shape.TotalElements();
    const CollectiveSchedule schedule = MakeSchedule(shape);
    shown.steps = CostOf(schedule, shape.hosts).steps;
    std::vector<ExplainRankTraffic>& sends = sends_.emplace_back();
    for (const std::vector<Round>& rounds : schedule.ranks) {
      ExplainRankTraffic& rank = sends.emplace_back();
      for (const Round& round : rounds) {
        for (const Exchange& exchange : round.exchanges) {
          if (exchange.send.empty()) continue;
          ++rank.messages;
          rank.bytes += WireBytes(wire, exchange.send.size());
        }
      }
      shown.messages += rank.messages;
      shown.bytes += rank.bytes;
    }
    if (shape.kind == CollectiveKind::kAllReduce) {
      shown.predictions =
          PredictAllReduce(shape.elements, shape.hosts, wire, context_.LinksOf(communicator),
                           context_.input().options.all_reduce);
    }
    return shown;
  }

  std::string GroupName(const PlanCommunicator& ranks) const {
    const auto group =
        std::find_if(groups_.begin(), groups_.end(),
                     [&](const ExplainGroup& candidate) { return candidate.ranks == ranks; });
    return group == groups_.end() ? "" : group->name;
  }

  const PlanContext& context_;
  const absl::Span<const ExplainGroup> groups_;
  ExplainPhase& phase_;
  std::vector<size_t> first_traffic_;                   // by communicator, in phase_.rank_traffic
  std::map<Alike, size_t> position_;                    // in phase_.collectives
  std::vector<std::vector<ExplainRankTraffic>> sends_;  // by collective and rank, of one
};

}  // namespace

void ExplainCollectives(const PlanContext& context, absl::Span<const ExplainGroup> groups,
                        ExplainPhase& phase) {
  CollectivesMaker(context, groups, phase).Make();
}

}  // namespace weft
