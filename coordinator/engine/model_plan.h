// The scheduler's input for the graphs of one model on placed devices.
#pragma once

#include <cstdint>
#include <vector>

#include "common/device/device.h"
#include "common/graph/graph.h"
#include "coordinator/models/model.h"
#include "coordinator/placement/model_placement.h"
#include "coordinator/scheduler/plan_input.h"

namespace weft {

// Devices in the scheduler's order, and what of the model each holds.
struct PlacedDevices {
  std::vector<Device*> devices;
  ModelPlacement placement;
  std::vector<BatchRange> batch_ranges;  // as PlanInput
  // By device that is a group of ranks: the share of each; empty: equal ones.
  std::vector<std::vector<double>> rank_shares;
  // And how its ranks reach each other; shorter or empty: the default.
  std::vector<LinkModels> rank_links;
};

// Everything on one device.
PlacedDevices PlaceOnOneDevice(const Model& model, Device& device);

// Operations of all nodes.
int64_t GraphFlops(const Graph& graph);

// `graph` is the model's for steps of `tokens` tokens; it outlives the result.
PlanInput MakePlanInput(const Graph& graph, const PlacedDevices& placed, int64_t tokens,
                        const PlanOptions& options);

}  // namespace weft
