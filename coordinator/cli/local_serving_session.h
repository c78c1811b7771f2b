// A session of the command line, as the serving engine uses it.
#pragma once

#include <memory>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "coordinator/cli/fleet_board.h"
#include "coordinator/cli/local_session.h"
#include "coordinator/serving/serving_session.h"

namespace weft {

// Opens a LocalSession each time it is called: workers are connected (or started) anew, and weights
// found where they lie. `needs.sampler` is not used: steps return candidates for the default
// options. `board` (may be null) shows the plan of each. Everything outlives the result.
OpenServingSession OpenLocalServingSession(const ModelFlags& flags, const SessionNeeds& needs,
                                           const Clock& clock, Logger& logger, FleetBoard* board);

}  // namespace weft
