// The part of the text that is about one phase.
#pragma once

#include <string>

#include "coordinator/explain/explain_text.h"

namespace weft {

std::string PhaseText(const ExplainReport& report, const ExplainPhase& phase,
                      const ExplainTextOptions& options);

}  // namespace weft
