// Which weights and caches the devices that should hold them cannot use.
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

// The nodes of a prompt step that read or write each weight and cache.
class LeafConsumers {
 public:
  // A cache type whose blocks do not fit the model's heads is asked as F32; such a type is refused
  // where the runner's options are checked. Errors: those of Model::BuildGraph.
  static absl::StatusOr<LeafConsumers> Create(const Model& model, DType key_type, DType value_type);

  // Can `device` run everything that reads weight `id`? No with its reason. (Weights that no node
  // of a step reads are fine anywhere.)
  Support SupportsWeight(const Device& device, int32_t id) const;
  // The same for what writes and reads the pages of cache `id`.
  Support SupportsCache(const Device& device, int32_t id) const;

 private:
  Support SupportsAll(const Device& device, const std::vector<NodeId>& nodes) const;

  Graph graph_;
  std::vector<std::vector<NodeId>> weights_;  // by weight id
  std::vector<std::vector<NodeId>> caches_;   // by cache id
};

}  // namespace weft
