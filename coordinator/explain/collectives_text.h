// What ranks send each other in a step, in words.
#pragma once

#include <string>

#include "coordinator/explain/explain_report.h"

namespace weft {

// Lines of a phase; empty where nothing is exchanged.
std::string CollectivesText(const ExplainReport& report, const ExplainPhase& phase);

}  // namespace weft
