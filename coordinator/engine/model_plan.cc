#include "coordinator/engine/model_plan.h"

namespace weft {

int64_t GraphFlops(const Graph& graph) {
  int64_t flops = 0;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (graph.Executes(NodeId{i})) flops += NodeCost(graph, NodeId{i}).flops;
  }
  return flops;
}

PlacedDevices PlaceOnOneDevice(const Model& model, Device& device) {
  PlacedDevices placed;
  placed.devices = {&device};
  const auto layers = static_cast<size_t>(model.hyperparameters().n_layer);
  placed.placement.weights.assign(model.weights().size(), 0);
  placed.placement.caches.assign(model.caches().size(), 0);
  placed.placement.layer_devices.assign(layers + 1, 0);
  placed.placement.attention_pins.assign(layers, kNoDevice);
  return placed;
}

PlanInput MakePlanInput(const Graph& graph, const PlacedDevices& placed, int64_t tokens,
                        const PlanOptions& options) {
  PlanInput input;
  input.graph = &graph;
  input.devices = placed.devices;
  input.batch = tokens;
  input.batch_ranges = placed.batch_ranges;
  input.options = options;
  input.leafs.resize(graph.nodes().size());
  const ModelPlacement& placement = placed.placement;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(NodeId{i});
    if (const LeafAttributes* leaf = graph.leaf(NodeId{i})) {
      if (leaf->kind == LeafKind::kWeight) {
        Device& home = *placed.devices[placement.weights[leaf->id]];
        input.leafs[i] = {&home.buffer_type(), BufferUsage::kWeights};
      } else if (leaf->kind == LeafKind::kCache) {
        Device& home = *placed.devices[placement.caches[leaf->id]];
        input.leafs[i] = {&home.buffer_type(), BufferUsage::kAny};
      }
    } else if (node.op == Op::kPagedAttention && node.layer >= 0 &&
               static_cast<size_t>(node.layer) < placement.attention_pins.size()) {
      const int32_t pin = placement.attention_pins[node.layer];
      if (pin != kNoDevice) input.pins.push_back({NodeId{i}, pin});
    }
  }
  return input;
}

}  // namespace weft
