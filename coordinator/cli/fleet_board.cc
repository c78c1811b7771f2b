#include "coordinator/cli/fleet_board.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "coordinator/tokenizer/utf8_stream.h"

namespace weft {
namespace {

Json HostsJson(const std::vector<BoardHost>& hosts) {
  Json list = Json::array();
  for (const BoardHost& host : hosts) {
    list.push_back({{"name", host.name},
                    {"label", ReplaceInvalidUtf8(host.label)},
                    {"machine", ReplaceInvalidUtf8(host.machine)},
                    {"release", ReplaceInvalidUtf8(host.release)},
                    {"ping_us", host.ping_us},
                    {"has_cache", host.has_cache}});
  }
  return list;
}

Json DevicesJson(const std::vector<SummaryDevice>& devices) {
  Json list = Json::array();
  for (const SummaryDevice& device : devices) {
    const int64_t held = device.held.weight_bytes + device.held.cache_bytes;
    // A worker says what was free when it was connected, before it got its part.
    const int64_t left = device.memory.free_bytes - held;
    list.push_back({{"name", device.name},
                    {"kind", device.kind},
                    {"host", device.host},
                    {"description", ReplaceInvalidUtf8(device.description)},
                    {"total_bytes", device.memory.total_bytes},
                    {"free_bytes", std::max<int64_t>(left, 0)},
                    {"weights", device.held.weights},
                    {"weight_bytes", device.held.weight_bytes},
                    {"cache_bytes", device.held.cache_bytes}});
  }
  return list;
}

Json LayersJson(const std::vector<SummaryLayers>& layers) {
  Json list = Json::array();
  for (const SummaryLayers& part : layers) {
    Json json;
    if (part.part == SummaryLayers::Part::kLayers) {
      json = {{"part", "layers"}, {"first", part.first}, {"last", part.last}};
    } else {
      json["part"] = part.part == SummaryLayers::Part::kInput ? "input" : "output";
    }
    json["device"] = part.device;
    json["why"] = ReplaceInvalidUtf8(part.why);
    list.push_back(std::move(json));
  }
  return list;
}

std::string SplitWords(const PlacementOptions& options) {
  switch (options.split_mode) {
    case SplitMode::kNone:
      return "all layers on one device (--split-mode none)";
    case SplitMode::kLayer:
      return options.tensor_split.empty() ? "layers in the shares of the devices' free memory"
                                          : "layers in the shares of --tensor-split";
    case SplitMode::kTensor:
      return "each layer cut over the ranks of a group (--split-mode tensor)";
  }
  return "";
}

}  // namespace

Json BoardJson(const BoardPlan& plan) {
  Json groups = Json::array();
  for (const SummaryGroup& group : plan.summary.groups) {
    groups.push_back({{"name", group.name}, {"ranks", group.ranks}, {"shares", group.shares}});
  }
  Json strays = Json::array();
  for (const SummaryStray& stray : plan.summary.strays) {
    strays.push_back({{"first", ReplaceInvalidUtf8(stray.first)},
                      {"count", stray.count},
                      {"device", stray.device},
                      {"why", ReplaceInvalidUtf8(stray.why)}});
  }
  Json remarks = Json::array();
  for (const std::string& remark : plan.summary.remarks) {
    remarks.push_back(ReplaceInvalidUtf8(remark));
  }
  return {{"architecture", ReplaceInvalidUtf8(plan.architecture)},
          {"layer_count", plan.layers},
          {"split", plan.split},
          {"hosts", HostsJson(plan.hosts)},
          {"devices", DevicesJson(plan.summary.devices)},
          {"groups", std::move(groups)},
          {"layers", LayersJson(plan.summary.layers)},
          {"strays", std::move(strays)},
          {"strays_left_out", plan.summary.strays_left_out},
          {"remarks", std::move(remarks)},
          {"weight_bytes", plan.memory.weights},
          {"cache_bytes", plan.memory.cache},
          {"arena_bytes", plan.arena_bytes}};
}

Json FleetBoard::Plan() const {
  MutexLock lock(mutex_);
  return plan_;
}

absl::Status FleetBoard::Show(LocalSession& session) {
  const ModelRunner& runner = session.runner();
  const RunnerOptions& options = runner.options();
  BoardPlan plan;
  plan.architecture = session.model().hyperparameters().architecture;
  plan.layers = session.model().hyperparameters().n_layer;
  plan.split = SplitWords(session.placement_options());
  plan.memory = runner.memory();
  plan.arena_bytes = runner.counters().arena_bytes;
  ASSIGN_OR_RETURN(plan.summary, SummarizePlacement(session.model(), runner.placed(),
                                                    {options.key_type, options.value_type,
                                                     runner.page_count() + 1}));
  if (Fleet* fleet = session.fleet(); fleet != nullptr) {
    for (int32_t i = 0; i < fleet->worker_count(); ++i) {
      const RemoteWorker& worker = fleet->worker(i);
      const RemoteWorkerInfo& info = worker.info();
      plan.hosts.push_back({worker.name(), worker.label(), info.name, info.release,
                            worker.pings().least_us, info.has_cache});
    }
  }
  plan.hosts.push_back({session.cpu().host(), "this process", "", WEFT_VERSION, 0, false});
  Json json = BoardJson(plan);
  MutexLock lock(mutex_);
  plan_ = std::move(json);
  return absl::OkStatus();
}

void FleetBoard::Clear() {
  MutexLock lock(mutex_);
  plan_ = Json();
}

}  // namespace weft
