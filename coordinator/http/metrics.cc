#include "coordinator/http/metrics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/metrics/metric_list.h"

namespace weft {
namespace {

void AddRequests(const RequestCounters& requests, MetricList& list) {
  for (const auto& [key, count] : requests.counts()) {
    list.Counter("weft_http_requests_total", "HTTP requests by route and status.",
                 static_cast<double>(count),
                 {{"route", key.first}, {"code", absl::StrCat(key.second)}});
  }
}

void AddCounters(const ServingCounters& c, MetricList& list) {
  const auto add = [&](const char* name, const char* help, int64_t value) {
    list.Counter(name, help, static_cast<double>(value));
  };
  add("weft_requests_total", "Continuations that were taken.", c.requests);
  add("weft_requests_refused_total", "Continuations refused since the queue was full.", c.refused);
  add("weft_requests_finished_total", "Continuations that came to their end.", c.finished);
  add("weft_requests_failed_total", "Continuations that an error ended.", c.failed);
  add("weft_requests_cancelled_total", "Continuations whose client left.", c.cancelled);
  add("weft_requests_preempted_total", "Continuations set back since the cache was full.",
      c.preempted);
  add("weft_prompt_tokens_total", "Tokens of admitted prompts.", c.prompt_tokens);
  add("weft_prompt_tokens_cached_total", "Of these, found in the cache.", c.reused_tokens);
  add("weft_generated_tokens_total", "Tokens generated.", c.generated_tokens);
  add("weft_steps_total", "Steps of the model.", c.steps);
  add("weft_step_tokens_total", "Tokens of all steps together.", c.step_tokens);
  add("weft_logits_fetched_total", "Rows that came with all their logits.", c.logits_fetched);
  add("weft_sessions_opened_total", "Times that the model was opened on its workers.",
      c.sessions_opened);
  add("weft_sessions_lost_total", "Times that a worker was lost.", c.sessions_lost);
  list.Counter("weft_engine_waiting_seconds_total", "Time the engine waited for steps.",
               c.waiting_seconds);
  list.Counter("weft_engine_working_seconds_total",
               "Time the engine spent between steps: batches, sampling, text.", c.working_seconds);
  list.Counter("weft_engine_sampling_seconds_total",
               "Of the time between steps: choosing tokens, and texts to stop at.",
               c.sampling_seconds);
  list.Histogram("weft_queue_seconds", "From submission to admission.", c.queue.view());
  list.Histogram("weft_time_to_first_token_seconds", "From submission to the first token.",
                 c.first_token.view());
  list.Histogram("weft_time_per_token_seconds", "Between tokens of one continuation.",
                 c.between_tokens.view());
  list.Histogram("weft_batch_tokens", "Tokens of a step.", c.batch_tokens.view());
  list.Histogram("weft_batch_sequences", "Continuations that share a step.",
                 c.batch_sequences.view());
  list.Histogram("weft_step_seconds", "From the launch of a step to the end of its sampling.",
                 c.step.view());
}

void AddRunner(const ServingState& state, MetricList& list) {
  const RunnerCounters& r = state.runner;
  list.Counter("weft_graphs_built_total", "Graphs planned by this session, once a bucket.",
               static_cast<double>(r.graphs_built));
  list.Counter("weft_graphs_reused_total", "Steps of this session that found their graph.",
               static_cast<double>(r.graphs_reused));
  list.Counter("weft_replans_total", "Plans of this session made again after the reserve.",
               static_cast<double>(r.replans));
  list.Gauge("weft_arena_bytes", "Working memory of all devices.",
             static_cast<double>(r.arena_bytes));
  list.Gauge("weft_weight_bytes", "Memory of weights.", static_cast<double>(state.memory.weights));
  list.Gauge("weft_kv_cache_bytes", "Memory of the cache.",
             static_cast<double>(state.memory.cache));
}

// Processes are as many as the session has workers, and this one.
void AddProcesses(const ServingState& state, MetricList& list) {
  for (const ProcessTimes& process : state.processes) {
    const auto add = [&](const char* name, const char* help, double value) {
      list.Counter(name, help, value, {{"rank", process.name}});
    };
    add("weft_rank_steps_total", "Steps of this session in which a process had a part.",
        static_cast<double>(process.steps));
    add("weft_rank_compute_seconds_total", "Computing, of the busiest device of each step.",
        process.compute_seconds);
    add("weft_rank_wait_seconds_total", "Waiting of that device for other devices and processes.",
        process.wait_seconds);
    const double wire = process.round_trip_seconds - process.compute_seconds - process.wait_seconds;
    add("weft_rank_wire_seconds_total",
        "Between a request and its reply, beyond computing and waiting.", std::max(wire, 0.0));
    add("weft_rank_sent_bytes_total", "Sent to other processes of the plan.",
        static_cast<double>(process.sent_bytes));
    add("weft_rank_programs_total", "Programs that were sent to a process.",
        static_cast<double>(process.programs));
  }
  for (const TransportBytes& transport : state.transports) {
    const auto add = [&](const char* direction, int64_t bytes) {
      list.Counter("weft_transport_bytes_total",
                   "Payloads of this session's messages to and from workers.",
                   static_cast<double>(bytes),
                   {{"transport", transport.transport}, {"direction", direction}});
    };
    add("sent", transport.sent);
    add("received", transport.received);
  }
}

void AddAll(const ServingState& state, const Health& health, const RequestCounters& requests,
            MetricList& list) {
  list.Gauge("weft_ready", "1 if requests are served.", health.ready ? 1 : 0);
  list.Gauge("weft_progressing", "1 unless work waits and no step ends.",
             health.progressing ? 1 : 0);
  const auto by_state = [&list](const char* name, const char* help, const char* value,
                                int64_t number) {
    list.Gauge(name, help, static_cast<double>(number), {{"state", value}});
  };
  for (const auto& [value, number] :
       {std::pair("active", state.active), std::pair("waiting", state.waiting)}) {
    by_state("weft_requests", "Continuations under way.", value, number);
  }
  list.Gauge("weft_slots", "Continuations that can share a step.",
             static_cast<double>(state.slots));
  const int64_t free = state.pages - state.pages_used - state.pages_kept;
  for (const auto& [value, number] :
       {std::pair("used", state.pages_used), std::pair("kept", state.pages_kept),
        std::pair("free", free)}) {
    by_state("weft_kv_pages", "Pages of the cache: in use, kept for reuse, free.", value, number);
  }
  AddCounters(state.counters, list);
  AddRunner(state, list);
  AddProcesses(state, list);
  list.Gauge("weft_http_connections", "Open connections.",
             static_cast<double>(requests.connections()));
  AddRequests(requests, list);
}

}  // namespace

std::string MetricsText(const ServingState& state, const Health& health,
                        const RequestCounters& requests) {
  MetricList list;
  AddAll(state, health, requests, list);
  return list.Text();
}

std::string MetricsTable() {
  // One of everything that is shown only where there is some.
  ServingState state;
  state.processes.emplace_back();
  state.transports.emplace_back();
  RequestCounters requests;
  requests.Count("", 200);
  MetricList list;
  AddAll(state, {}, requests, list);
  return list.Table();
}

HttpReply MetricsReply(const std::string& text) {
  HttpReply reply;
  reply.content_type = kMetricsContentType;
  reply.body = text;
  return reply;
}

}  // namespace weft
