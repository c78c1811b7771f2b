// Symptoms that people ask about, found in a report.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "coordinator/explain/explain_report.h"
#include "coordinator/placement/placement_remark.h"

namespace weft {

// Those of the placement and the passes first, then what the finished report shows. `placement` are
// ModelPlacement's; report.remarks is not read.
std::vector<ExplainRemark> MakeExplainRemarks(const ExplainReport& report,
                                              absl::Span<const PlacementRemark> placement);

}  // namespace weft
