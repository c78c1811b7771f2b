#include "common/collectives/algorithm_choice.h"

#include <algorithm>

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

CollectiveAlgorithm ChooseAllReduce(int64_t elements, absl::Span<const int32_t> hosts, DType wire,
                                    const LinkModels& links) {
  CollectiveShape shape;
  shape.hosts.assign(hosts.begin(), hosts.end());
  shape.elements = elements;
  CollectiveAlgorithm best = CollectiveAlgorithm::kRecursiveDoubling;
  double least = 0;
  for (int i = 0; i < kCollectiveAlgorithmCount; ++i) {
    shape.algorithm = static_cast<CollectiveAlgorithm>(i);
    const double predicted = PredictMicroseconds(CostOf(MakeSchedule(shape), hosts), wire, links);
    if (i > 0 && predicted >= least) continue;
    best = shape.algorithm;
    least = predicted;
  }
  return best;
}

}  // namespace weft
