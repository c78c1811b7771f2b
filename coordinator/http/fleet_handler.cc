#include "coordinator/http/fleet_handler.h"

#include <chrono>
#include <utility>

#include "coordinator/http/reply_json.h"

namespace weft {
namespace {

Json CountersJson(const ServingState& state) {
  const ServingCounters& c = state.counters;
  return {{"requests", c.requests},
          {"finished", c.finished},
          {"failed", c.failed},
          {"cancelled", c.cancelled},
          {"prompt_tokens", c.prompt_tokens},
          {"reused_tokens", c.reused_tokens},
          {"generated_tokens", c.generated_tokens},
          {"steps", c.steps},
          {"step_tokens", c.step_tokens},
          {"sessions_opened", c.sessions_opened},
          {"sessions_lost", c.sessions_lost}};
}

Json ProcessesJson(const ServingState& state) {
  Json list = Json::array();
  for (const ProcessTimes& process : state.processes) {
    list.push_back({{"name", process.name},
                    {"steps", process.steps},
                    {"compute_seconds", process.compute_seconds},
                    {"wait_seconds", process.wait_seconds},
                    {"round_trip_seconds", process.round_trip_seconds},
                    {"sent_bytes", process.sent_bytes}});
  }
  return list;
}

}  // namespace

HttpReply HandleFleet(const ServedModel& model, const Health& health) {
  const ServingState state = model.engine->state();
  const std::chrono::duration<double> now = model.clock->Now().time_since_epoch();
  Json json = {{"model", model.name},
               {"seconds", now.count()},
               {"ready", health.ready},
               {"progressing", health.progressing},
               {"trouble", health.trouble},
               {"active", state.active},
               {"waiting", state.waiting},
               {"slots", state.slots},
               {"context", model.engine->context()}};
  json["pages"] = {{"used", state.pages_used}, {"kept", state.pages_kept}, {"total", state.pages}};
  json["counters"] = CountersJson(state);
  json["processes"] = ProcessesJson(state);
  json["plan"] = model.fleet == nullptr ? Json() : model.fleet->Plan();
  HttpReply reply = JsonReply(json);
  reply.headers.emplace_back("Cache-Control", "no-store");
  return reply;
}

}  // namespace weft
