// The numbers of the rotary embedding that follow from a model's metadata (spec G.1).
#pragma once

#include "absl/status/status.h"
#include "common/gguf/gguf_metadata.h"
#include "coordinator/models/hyperparameters.h"

namespace weft {

// Fills model.rope_scaling and model.rope (the kind excepted, which is the architecture's). Needs
// key_head and context_length. Errors: INVALID_ARGUMENT naming key and value.
absl::Status ReadRopeParameters(const GgufMetadata& metadata, Hyperparameters& model);

}  // namespace weft
