// The architectures that weft knows, one explicit list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "coordinator/models/graph_context.h"
#include "coordinator/models/hyperparameters.h"
#include "coordinator/models/weight_table.h"

namespace weft {

// One model family: three functions, in the order in which a file is taken in.
struct Architecture {
  std::string_view name;  // value of general.architecture
  // Adjusts what ReadCommonHyperparameters found and checks what this family cannot do.
  absl::Status (*refine)(const GgufMetadata& metadata, Hyperparameters& model);
  // Declares the tensors with their shapes.
  absl::Status (*declare)(const Hyperparameters& model, WeightTable& weights);
  // Token ids to logits; returns kNoNode where the shape has no outputs. Errors stick to the
  // context's builder.
  NodeId (*build)(GraphContext& context);
};

absl::Span<const Architecture> AllArchitectures();

// Null if unknown.
const Architecture* FindArchitecture(std::string_view name);

// "llama, qwen2, ...".
std::vector<std::string> ArchitectureNames();

}  // namespace weft
