// Which weights the devices that should hold them cannot use.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "common/graph/graph.h"
#include "coordinator/models/model.h"

namespace weft {

// Tokens of the prompt step that the question is asked with.
inline constexpr int64_t kSupportTokens = 32;

// The nodes of a prompt step that read each weight.
class WeightConsumers {
 public:
  // Errors: those of Model::BuildGraph.
  static absl::StatusOr<WeightConsumers> Create(const Model& model);

  // Can `device` run everything that reads weight `id`? No with its reason. (Weights that no node
  // of a step reads are fine anywhere.)
  Support Supports(const Device& device, int32_t id) const;

 private:
  Graph graph_;
  std::vector<std::vector<NodeId>> nodes_;  // by weight id
};

}  // namespace weft
