// The report as one page for a browser: self-contained, with the plans of all toggles in it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/explain/explain_report.h"

namespace weft {

// HTML that loads nothing and runs only its own script, whatever the model's names contain.
// `report` is MakeExplainReport of the same arguments; other combinations of the toggles are
// planned here. One that cannot be planned shows the reason.
std::string ExplainPage(const ExplainReport& report, const Model& model,
                        absl::Span<Device* const> devices, const ExplainOptions& options);

}  // namespace weft
