// The nodes of a phase by layer, equal layers together: how a hundred layers fit on a page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/explain/explain_report.h"

namespace weft {

// Consecutive nodes of one layer on one device: positions in ExplainPhase::nodes, half-open.
struct NodeRun {
  int32_t device = kNoDevice;
  int32_t begin = 0;
  int32_t end = 0;
};

// Layers first_layer to last_layer have the same operations on the same devices for the same
// causes; `runs` are those of the first. Layer -1: nodes before or after the layers.
struct LayerGroup {
  int32_t first_layer = -1;
  int32_t last_layer = -1;
  std::vector<NodeRun> runs;
};

std::vector<LayerGroup> GroupLayers(const ExplainPhase& phase);

// "input", "output", "blk.3", "blk.0..31 (32 layers)". `first`: the group that begins the phase.
std::string LayerGroupName(const LayerGroup& group, bool first);

}  // namespace weft
