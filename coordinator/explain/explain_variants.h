// What a person may toggle on the page, and the options of every combination.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/explain/explain_report.h"

namespace weft {

struct ExplainChoice {
  std::string label;
  std::function<void(ExplainOptions&)> apply;
};

// A setting with two or more choices, of which `given` is what the options say.
struct ExplainToggle {
  std::string name;
  std::vector<ExplainChoice> choices;
  int32_t given = 0;
};

// Those that can make a difference: none where one CPU is everything.
std::vector<ExplainToggle> MakeExplainToggles(const Model& model, absl::Span<Device* const> devices,
                                              const ExplainOptions& options);

// The options of every combination of choices, the last toggle changing fastest. Without toggles:
// `options` alone.
std::vector<ExplainOptions> CombineToggles(absl::Span<const ExplainToggle> toggles,
                                           const ExplainOptions& options);

}  // namespace weft
