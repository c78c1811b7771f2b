// GET /v1/fleet: the plan, and what it does.
#pragma once

#include "common/http/http_message.h"
#include "coordinator/http/health_report.h"
#include "coordinator/http/served_model.h"

namespace weft {

HttpReply HandleFleet(const ServedModel& model, const Health& health);

}  // namespace weft
