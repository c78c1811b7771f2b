#include "coordinator/models/model_registry.h"

#include <array>

#include "coordinator/models/architectures/architectures.h"

namespace weft {

absl::Span<const Architecture> AllArchitectures() {
  static const std::array<Architecture, 4> kList = {LlamaArchitecture(), Qwen2Architecture(),
                                                    Qwen3Architecture(), Qwen3MoeArchitecture()};
  return kList;
}

const Architecture* FindArchitecture(std::string_view name) {
  for (const Architecture& architecture : AllArchitectures()) {
    if (architecture.name == name) return &architecture;
  }
  return nullptr;
}

std::vector<std::string> ArchitectureNames() {
  std::vector<std::string> names;
  for (const Architecture& architecture : AllArchitectures()) {
    names.emplace_back(architecture.name);
  }
  return names;
}

}  // namespace weft
