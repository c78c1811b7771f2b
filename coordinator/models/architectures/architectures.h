// The entry of each architecture file. model_registry.cc lists them.
#pragma once

#include "coordinator/models/model_registry.h"

namespace weft {

Architecture LlamaArchitecture();
Architecture Qwen2Architecture();
Architecture Qwen3Architecture();
Architecture Qwen3MoeArchitecture();

}  // namespace weft
