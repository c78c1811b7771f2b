#include "coordinator/http/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Collects families; each call adds one.
class MetricList {
 public:
  void Counter(const char* name, const char* help, double value) {
    Add(name, help, MetricType::Counter).metric.emplace_back().counter.value = value;
  }

  void Gauge(const char* name, const char* help, double value) {
    Add(name, help, MetricType::Gauge).metric.emplace_back().gauge.value = value;
  }

  // One gauge a row, told apart by a label.
  void Gauges(const char* name, const char* help, const char* label,
              const std::vector<std::pair<std::string, double>>& rows) {
    MetricFamily& family = Add(name, help, MetricType::Gauge);
    for (const auto& [value, number] : rows) {
      ClientMetric& metric = family.metric.emplace_back();
      metric.label.push_back({label, value});
      metric.gauge.value = number;
    }
  }

  void Histogram(const char* name, const char* help, const DurationHistogram& histogram) {
    ClientMetric& metric = Add(name, help, MetricType::Histogram).metric.emplace_back();
    metric.histogram.sample_count = static_cast<uint64_t>(histogram.count);
    metric.histogram.sample_sum = histogram.sum;
    uint64_t cumulative = 0;
    for (size_t i = 0; i < DurationHistogram::kBounds.size(); ++i) {
      cumulative += static_cast<uint64_t>(histogram.counts[i]);
      metric.histogram.bucket.push_back({cumulative, DurationHistogram::kBounds[i]});
    }
    metric.histogram.bucket.push_back(
        {metric.histogram.sample_count, std::numeric_limits<double>::infinity()});
  }

  void Requests(const RequestCounters& requests) {
    MetricFamily& family =
        Add("weft_http_requests_total", "HTTP requests by route and status.", MetricType::Counter);
    for (const auto& [key, count] : requests.counts()) {
      ClientMetric& metric = family.metric.emplace_back();
      metric.label.push_back({"route", key.first});
      metric.label.push_back({"code", absl::StrCat(key.second)});
      metric.counter.value = static_cast<double>(count);
    }
  }

  const std::vector<MetricFamily>& families() const { return families_; }

 private:
  MetricFamily& Add(const char* name, const char* help, MetricType type) {
    MetricFamily& family = families_.emplace_back();
    family.name = name;
    family.help = help;
    family.type = type;
    return family;
  }

  std::vector<MetricFamily> families_;
};

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
  add("weft_sessions_opened_total", "Times that the model was opened on its workers.",
      c.sessions_opened);
  add("weft_sessions_lost_total", "Times that a worker was lost.", c.sessions_lost);
  list.Counter("weft_engine_waiting_seconds_total", "Time the engine waited for steps.",
               c.waiting_seconds);
  list.Counter("weft_engine_working_seconds_total",
               "Time the engine spent between steps: batches, sampling, text.", c.working_seconds);
  list.Histogram("weft_queue_seconds", "From submission to admission.", c.queue);
  list.Histogram("weft_time_to_first_token_seconds", "From submission to the first token.",
                 c.first_token);
  list.Histogram("weft_time_per_token_seconds", "Between tokens of one continuation.",
                 c.between_tokens);
  list.Histogram("weft_step_seconds", "From the launch of a step to the end of its sampling.",
                 c.step);
}

void AddRunner(const ServingState& state, MetricList& list) {
  const RunnerCounters& r = state.runner;
  list.Counter("weft_graphs_built_total", "Graphs planned by this session, once a bucket.",
               static_cast<double>(r.graphs_built));
  list.Counter("weft_graphs_reused_total", "Steps of this session that found their graph.",
               static_cast<double>(r.graphs_reused));
  list.Counter("weft_replans_total", "Plans of this session made again after the reserve.",
               static_cast<double>(r.replans));
  list.Counter("weft_logits_fetched_total", "Rows of this session fetched with all their logits.",
               static_cast<double>(r.logits_fetched));
  list.Gauge("weft_arena_bytes", "Working memory of all devices.",
             static_cast<double>(r.arena_bytes));
  list.Gauge("weft_weight_bytes", "Memory of weights.", static_cast<double>(state.memory.weights));
  list.Gauge("weft_kv_cache_bytes", "Memory of the cache.",
             static_cast<double>(state.memory.cache));
}

}  // namespace

std::string MetricsText(const ServingState& state, const Health& health,
                        const RequestCounters& requests) {
  MetricList list;
  list.Gauge("weft_ready", "1 if requests are served.", health.ready ? 1 : 0);
  list.Gauge("weft_progressing", "1 unless work waits and no step ends.",
             health.progressing ? 1 : 0);
  list.Gauges("weft_requests", "Continuations under way.", "state",
              {{"active", static_cast<double>(state.active)},
               {"waiting", static_cast<double>(state.waiting)}});
  list.Gauge("weft_slots", "Continuations that can share a step.",
             static_cast<double>(state.slots));
  list.Gauges("weft_kv_pages", "Pages of the cache: in use, kept for reuse, free.", "state",
              {{"used", static_cast<double>(state.pages_used)},
               {"kept", static_cast<double>(state.pages_kept)},
               {"free", static_cast<double>(state.pages - state.pages_used - state.pages_kept)}});
  AddCounters(state.counters, list);
  AddRunner(state, list);
  list.Gauge("weft_http_connections", "Open connections.",
             static_cast<double>(requests.connections()));
  list.Requests(requests);
  return prometheus::TextSerializer().Serialize(list.families());
}

HttpReply MetricsReply(const std::string& text) {
  HttpReply reply;
  reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply.body = text;
  return reply;
}

}  // namespace weft
