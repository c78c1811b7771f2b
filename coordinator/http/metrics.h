// What /metrics shows, in Prometheus' text format.
#pragma once

#include <string>

#include "common/http/http_message.h"
#include "coordinator/http/health_report.h"
#include "coordinator/http/request_counters.h"
#include "coordinator/serving/serving_state.h"

namespace weft {

// All names begin with weft_; seconds and bytes are the units. Listed in docs/serving.md.
std::string MetricsText(const ServingState& state, const Health& health,
                        const RequestCounters& requests);

// Every metric that a server can have, whatever its flags: MetricList::Table().
std::string MetricsTable();

HttpReply MetricsReply(const std::string& text);

}  // namespace weft
