#include "coordinator/http/health_report.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "coordinator/http/reply_json.h"

namespace weft {
Health HealthOf(const ServingState& state, bool draining, const HealthOptions& options,
                Clock::TimePoint now) {
  Health health;
  health.ready = state.ready && !draining;
  if (draining) {
    health.trouble = "the server is shutting down";
  } else if (!state.ready) {
    health.trouble = state.trouble.empty() ? "the model is not open yet" : state.trouble;
  }
  if (state.active + state.waiting > 0) {
    health.stalled_seconds = std::chrono::duration<double>(now - state.last_progress).count();
  }
  health.progressing = health.stalled_seconds <= options.stall_seconds;
  if (health.ready && !health.progressing) {
    health.trouble =
        absl::StrCat("no step ended for ", static_cast<int64_t>(health.stalled_seconds),
                     " s, though ", state.active + state.waiting, " requests wait");
  }
  return health;
}

HttpReply LiveReply() { return TextReply(200, "live"); }

HttpReply ReadyReply(const Health& health) {
  return health.good() ? TextReply(200, "ready") : TextReply(503, "not ready: " + health.trouble);
}

HttpReply HealthReply(const Health& health, const ServingState& state) {
  HttpReply reply =
      JsonReply({{"status", health.good() ? "ok" : "unavailable"},
                 {"live", true},
                 {"ready", health.ready},
                 {"progressing", health.progressing},
                 {"stalled_seconds", health.stalled_seconds},
                 {"trouble", health.trouble.empty() ? Json() : Json(health.trouble)},
                 {"requests", {{"active", state.active}, {"waiting", state.waiting}}},
                 {"slots", state.slots},
                 {"kv_pages",
                  {{"total", state.pages}, {"used", state.pages_used}, {"kept", state.pages_kept}}},
                 {"steps", state.counters.steps},
                 {"sessions_lost", state.counters.sessions_lost}});
  reply.status = health.good() ? 200 : 503;
  return reply;
}

}  // namespace weft
