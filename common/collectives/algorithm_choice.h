// Which algorithm an all-reduce takes: the one that a simple model of the links finds fastest. A
// pure function; whoever makes the plan decides for all ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/collectives/schedule.h"
#include "common/tensor/dtype.h"

namespace weft {

// What a message costs: latency + bytes / rate.
struct LinkModel {
  double latency_us = 10;
  double bytes_per_s = 5e9;
  friend bool operator==(const LinkModel&, const LinkModel&) = default;
};

// Between ranks of one host and of several.
struct LinkModels {
  LinkModel inner{5, 8e9};
  LinkModel outer{30, 1.25e9};
  friend bool operator==(const LinkModels&, const LinkModels&) = default;
};

// Which algorithms an all-reduce may take: all, or those that begin like this between ranks.
// Whether hosts come first is always the prediction's choice.
enum class AllReducePolicy : uint8_t { kAuto, kDoubling, kByParts };

// Microseconds of a schedule: its chain of steps at the latencies of the links, the messages beyond
// one a step that a rank sends, at a tenth of them, and its bytes at the rates.
double PredictMicroseconds(const ScheduleCost& cost, DType wire, const LinkModels& links);

struct AllReducePrediction {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRecursiveDoubling;
  double microseconds = 0;
};
// Of each algorithm that the policy allows, in the order of the enumeration; hosts first only where
// some host has several ranks and there are other hosts, and then only what sums in the same order:
// sums of all lengths have the same order, whatever the links. hosts[r] as in CollectiveShape.
std::vector<AllReducePrediction> PredictAllReduce(int64_t elements, absl::Span<const int32_t> hosts,
                                                  DType wire, const LinkModels& links,
                                                  AllReducePolicy policy = AllReducePolicy::kAuto);

// The algorithm with the least prediction, of equal ones the first.
CollectiveAlgorithm ChooseAllReduce(int64_t elements, absl::Span<const int32_t> hosts, DType wire,
                                    const LinkModels& links,
                                    AllReducePolicy policy = AllReducePolicy::kAuto);

}  // namespace weft
