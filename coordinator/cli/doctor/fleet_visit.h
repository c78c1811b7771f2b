// Asks a fleet what `weft doctor` wants to know, and goes on where one worker or link does not
// work: each worker alone first, then those that answered together, in both directions.
#pragma once

#include <vector>

#include "common/base/log.h"
#include "common/tls/tls_folder.h"
#include "coordinator/cli/doctor/checks.h"
#include "coordinator/cluster/fleet.h"

namespace weft {

// Of the workers that `options` names, none of which it starts. `own`: the folder of --tls, to look
// at their certificates with; null: they are not looked at. `measure`: the links, too.
std::vector<Finding> VisitFleet(const FleetOptions& options, const TlsFolder* own, bool measure,
                                Logger& logger);

}  // namespace weft
