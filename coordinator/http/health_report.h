// Whether the server is alive, ready and getting on: three different things.
#pragma once

#include "common/base/clock.h"
#include "common/http/http_message.h"
#include "coordinator/json/checked_json.h"
#include "coordinator/serving/serving_state.h"

namespace weft {

struct HealthOptions {
  // No step ended for this long although work waits: not progressing.
  double stall_seconds = 30;
};

struct Health {
  bool ready = false;          // a token went through every rank, and requests are taken
  bool progressing = false;    // steps end, or nobody waits for one
  double stalled_seconds = 0;  // how long work has waited for a step to end
  std::string trouble;         // why it is not ready; empty if it is

  bool good() const { return ready && progressing; }
};

// `draining`: no more requests are taken.
Health HealthOf(const ServingState& state, bool draining, const HealthOptions& options,
                Clock::TimePoint now);

// GET /livez: 200 from whoever can answer.
HttpReply LiveReply();
// GET /readyz: 200 or 503, with a line of text.
HttpReply ReadyReply(const Health& health);
// GET /healthz: 200 or 503, with JSON.
HttpReply HealthReply(const Health& health, const ServingState& state);

}  // namespace weft
