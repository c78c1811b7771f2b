#include "worker/worker_metrics.h"

#include "common/metrics/metric_list.h"

namespace weft {
namespace {

void AddState(const WorkerState& state, MetricList& list) {
  list.Gauge("weft_worker_ready", "1 if sessions are accepted.", state.accepts_sessions ? 1 : 0);
  list.Gauge("weft_worker_draining", "1 if what runs is finished, and nothing new begins.",
             state.draining ? 1 : 0);
  list.Gauge("weft_worker_sessions", "Open sessions.", state.sessions);
  list.Gauge("weft_worker_buffer_bytes", "Memory that sessions hold.",
             static_cast<double>(state.buffer_bytes));
  if (state.joined.has_value()) {
    list.Gauge("weft_worker_joined", "1 if the coordinator of --join has this worker in its list.",
               *state.joined ? 1 : 0);
  }
  if (state.certificate_days_left.has_value()) {
    list.Gauge("weft_worker_certificate_days_left",
               "Until the certificate of --tls ends; below 0 after it.",
               *state.certificate_days_left);
  }
}

void AddCounts(const WorkerCounts& counts, MetricList& list) {
  const auto add = [&](const char* name, const char* help, double value) {
    list.Counter(name, help, value);
  };
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  add("weft_worker_sessions_opened_total", "Sessions that were opened.",
      number(counts.sessions_opened));
  add("weft_worker_sessions_refused_total", "Sessions that were refused.",
      number(counts.sessions_refused));
  add("weft_worker_programs_total", "Programs that were installed.", number(counts.programs));
  add("weft_worker_steps_total", "Steps that were computed.", number(counts.steps));
  add("weft_worker_steps_failed_total", "Steps that failed or were cancelled.",
      number(counts.steps_failed));
  add("weft_worker_compute_seconds_total", "Computing, of the busiest device of each step.",
      counts.compute_seconds);
  add("weft_worker_wait_seconds_total", "Waiting of that device for other devices and processes.",
      counts.wait_seconds);
  add("weft_worker_wire_seconds_total", "That device's time on messages of collectives.",
      counts.wire_seconds);
  add("weft_worker_hand_off_seconds_total",
      "That device's time on tensors to and from other processes.", counts.hand_off_seconds);
  list.Histogram("weft_worker_step_seconds", "From the arrival of a step to its reply.",
                 counts.step_seconds.view());
  for (size_t i = 0; i < kWeightSources; ++i) {
    list.Counter("weft_worker_weight_bytes_total", "Bytes of weights by where they came from.",
                 number(counts.weight_bytes[i]),
                 {{"source", WeightSourceText(static_cast<WeightSource>(i))}});
  }
}

void AddTraffic(const WorkerCounts& counts, MetricList& list) {
  list.Counter("weft_worker_local_bytes_total", "Between ranks of this process.",
               static_cast<double>(counts.collectives.local_bytes));
  for (size_t use = 0; use < kCollectiveUses; ++use) {
    for (size_t size = 0; size < kCollectiveSizeClasses; ++size) {
      const WorkHistogram& seconds = counts.collectives.seconds[use][size];
      if (seconds.count == 0) continue;
      list.Histogram("weft_worker_collective_seconds",
                     "A rank's time in a collective, waiting for others included.", seconds.view(),
                     {{"algorithm", CollectiveUseText(static_cast<CollectiveUse>(use))},
                      {"size", CollectiveSizeText(size)}});
    }
  }
  for (const auto& [transport, traffic] : counts.traffic) {
    const auto add = [&](const char* name, const char* help, const char* direction, int64_t value) {
      list.Counter(name, help, static_cast<double>(value),
                   {{"transport", transport}, {"direction", direction}});
    };
    constexpr char kBytes[] = "weft_worker_transport_bytes_total";
    constexpr char kBytesHelp[] = "Payloads of messages to and from other processes.";
    constexpr char kMessages[] = "weft_worker_transport_messages_total";
    constexpr char kMessagesHelp[] = "Messages to and from other processes.";
    add(kBytes, kBytesHelp, "sent", traffic.bytes_sent);
    add(kBytes, kBytesHelp, "received", traffic.bytes_received);
    add(kMessages, kMessagesHelp, "sent", traffic.messages_sent);
    add(kMessages, kMessagesHelp, "received", traffic.messages_received);
  }
}

void AddDevice(const std::string& name, const DeviceMemory& memory, MetricList& list) {
  constexpr char kName[] = "weft_worker_device_memory_bytes";
  constexpr char kHelp[] = "Memory of a device, of the whole machine's use.";
  list.Gauge(kName, kHelp, static_cast<double>(memory.total_bytes - memory.free_bytes),
             {{"device", name}, {"state", "used"}});
  list.Gauge(kName, kHelp, static_cast<double>(memory.free_bytes),
             {{"device", name}, {"state", "free"}});
}

void AddCache(int64_t used_bytes, int64_t quota_bytes, const WorkerCounts& counts,
              MetricList& list) {
  list.Gauge("weft_worker_cache_bytes", "Bytes in --cache.", static_cast<double>(used_bytes));
  list.Gauge("weft_worker_cache_quota_bytes", "Most bytes in --cache.",
             static_cast<double>(quota_bytes));
  list.Counter("weft_worker_cache_hits_total", "Weights that were found in --cache.",
               static_cast<double>(counts.cache_hits));
  list.Counter("weft_worker_cache_misses_total", "Weights that were neither there nor in a file.",
               static_cast<double>(counts.cache_misses));
}

}  // namespace

std::string WorkerMetricsText(const WorkerState& state, const WorkerCounts& counts,
                              absl::Span<Device* const> devices, const WeightCache* cache) {
  MetricList list;
  AddState(state, list);
  AddCounts(counts, list);
  AddTraffic(counts, list);
  for (const Device* device : devices) AddDevice(device->name(), device->memory(), list);
  if (cache != nullptr) AddCache(cache->used_bytes(), cache->quota_bytes(), counts, list);
  return list.Text();
}

std::string WorkerMetricsTable() {
  // One of everything that is shown only where there is some.
  WorkerCounts counts;
  counts.traffic[""] = {};
  counts.collectives.seconds[0][0].count = 1;
  MetricList list;
  AddState({.certificate_days_left = 0, .joined = true}, list);
  AddCounts(counts, list);
  AddTraffic(counts, list);
  AddDevice("", {}, list);
  AddCache(0, 0, counts, list);
  return list.Table();
}

}  // namespace weft
