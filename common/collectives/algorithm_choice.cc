#include "common/collectives/algorithm_choice.h"

#include <algorithm>
#include <set>
#include <string>

#include "common/collectives/wire_format.h"

namespace weft {
namespace {

// Of a message's latency, what its sender spends before it can send the next.
constexpr double kShareOfSender = 0.1;

double Microseconds(int64_t steps, int64_t messages, double bytes, const LinkModel& link) {
  const auto chain = static_cast<double>(steps);
  const double more = std::max(static_cast<double>(messages) - chain, 0.0);
  return (chain + kShareOfSender * more) * link.latency_us + bytes / link.bytes_per_s * 1e6;
}

bool Allows(AllReducePolicy policy, CollectiveAlgorithm algorithm) {
  return policy == AllReducePolicy::kAuto ||
         IsByParts(algorithm) == (policy == AllReducePolicy::kByParts);
}

}  // namespace

double PredictMicroseconds(const ScheduleCost& cost, DType wire, const LinkModels& links) {
  const auto bytes = [wire](int64_t elements) {
    return static_cast<double>(WireBytes(wire, elements));
  };
  return Microseconds(cost.steps - cost.outer_steps, cost.messages - cost.outer_messages,
                      bytes(cost.elements - cost.outer_elements), links.inner) +
         Microseconds(cost.outer_steps, cost.outer_messages, bytes(cost.outer_elements),
                      links.outer);
}

std::vector<AllReducePrediction> PredictAllReduce(int64_t elements, absl::Span<const int32_t> hosts,
                                                  DType wire, const LinkModels& links,
                                                  AllReducePolicy policy) {
  CollectiveShape shape;
  shape.hosts.assign(hosts.begin(), hosts.end());
  shape.elements = elements;
  const std::set<int32_t> distinct(hosts.begin(), hosts.end());
  const bool grouped = distinct.size() > 1 && distinct.size() < hosts.size();
  std::vector<AllReducePrediction> predictions;
  const std::string order = SumOrder(CollectiveAlgorithm::kHostsFirstRecursiveDoubling, hosts);
  for (int i = 0; i < kCollectiveAlgorithmCount; ++i) {
    shape.algorithm = static_cast<CollectiveAlgorithm>(i);
    if (!Allows(policy, shape.algorithm) || (IsHostsFirst(shape.algorithm) && !grouped)) continue;
    if (SumOrder(shape.algorithm, hosts) != order) continue;
    const ScheduleCost cost = CostOf(MakeSchedule(shape), hosts);
    predictions.push_back({shape.algorithm, PredictMicroseconds(cost, wire, links)});
  }
  return predictions;
}

CollectiveAlgorithm ChooseAllReduce(int64_t elements, absl::Span<const int32_t> hosts, DType wire,
                                    const LinkModels& links, AllReducePolicy policy) {
  const std::vector<AllReducePrediction> all =
      PredictAllReduce(elements, hosts, wire, links, policy);
  return std::min_element(all.begin(), all.end(),
                          [](const AllReducePrediction& a, const AllReducePrediction& b) {
                            return a.microseconds < b.microseconds;
                          })
      ->algorithm;
}

}  // namespace weft
