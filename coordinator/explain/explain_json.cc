#include "coordinator/explain/explain_json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

class JsonWriter {
 public:
  JsonWriter(const ExplainReport& report, const ExplainJsonOptions& options)
      : report_(report), options_(options) {}

  Json Report() const {
    Json phases = Json::object();
    for (const ExplainPhase& phase : report_.phases) phases[phase.name] = Phase(phase);
    return {{"weft_explain", kExplainJsonVersion},
            {"model",
             {{"name", report_.model},
              {"architecture", report_.architecture},
              {"layers", report_.layers},
              {"experts", report_.experts}}},
            {"options",
             {{"batch", report_.batch},
              {"sequences", report_.sequences},
              {"context", report_.context},
              {"key_type", report_.key_type},
              {"value_type", report_.value_type}}},
            {"devices", Devices()},
            {"placement", Placement()},
            {"weights", Weights()},
            {"caches", Caches()},
            {"phases", std::move(phases)},
            {"remarks", Remarks()},
            {"groups", Groups()}};
  }

 private:
  // A device's name; null for none.
  Json Name(int32_t device) const {
    return device == kNoDevice ? Json() : Json(report_.devices[device].name);
  }

  static Json Range(const BatchRange& range) {
    const bool open = range.max == std::numeric_limits<int64_t>::max();
    return {{"min", range.min}, {"max", open ? Json() : Json(range.max)}};
  }

  Json Devices() const {
    Json list = Json::array();
    for (const ExplainDevice& device : report_.devices) {
      const bool known = device.memory_bytes > 0;
      list.push_back({{"name", device.name},
                      {"kind", device.kind},
                      {"host", device.host},
                      {"description", device.description},
                      {"batch", Range(device.batch)},
                      {"memory_bytes", known ? Json(device.memory_bytes) : Json()},
                      {"weights", device.weights},
                      {"weight_bytes", device.weight_bytes},
                      {"weights_mapped", device.mapped},
                      {"cache_bytes", device.cache_bytes},
                      {"arena_bytes", device.arena_bytes},
                      {"crossing_bytes", device.crossing_bytes},
                      {"workspace_bytes", device.workspace_bytes},
                      {"sum_bytes", device.Sum()}});
    }
    return list;
  }

  Json Placement() const {
    Json layers = Json::array();
    for (int64_t layer = 0; layer < report_.layers; ++layer) {
      layers.push_back(Name(report_.layer_devices[layer]));
    }
    return {{"input", Name(report_.input_device)},
            {"layers", std::move(layers)},
            {"output", Name(report_.layer_devices.back())}};
  }

  static Json Link(const LinkModel& link) {
    return {{"latency_us", link.latency_us}, {"bytes_per_s", link.bytes_per_s}};
  }

  Json Groups() const {
    Json list = Json::array();
    for (const ExplainGroup& group : report_.groups) {
      Json ranks = Json::array();
      for (const int32_t rank : group.ranks) ranks.push_back(Name(rank));
      list.push_back(
          {{"name", group.name},
           {"ranks", std::move(ranks)},
           {"shares", group.shares},
           {"links",
            {{"between_hosts", Link(group.links.outer)}, {"within_host", Link(group.links.inner)}}},
           {"machines", group.machines}});
    }
    return list;
  }

  Json Weights() const {
    Json list = Json::array();
    for (const ExplainWeight& weight : report_.weights) {
      list.push_back({{"name", weight.name},
                      {"tensor", weight.tensor.empty() ? Json() : Json(weight.tensor)},
                      {"type", weight.type},
                      {"layer", weight.layer},
                      {"bytes", weight.bytes},
                      {"device", Name(weight.device)},
                      {"reason", weight.reason},
                      {"with_layer", weight.with_layer},
                      {"split", weight.split.empty() ? Json() : Json(weight.split)}});
    }
    return list;
  }

  Json Caches() const {
    Json list = Json::array();
    for (const ExplainCache& cache : report_.caches) {
      list.push_back({{"layer", cache.layer},
                      {"kind", cache.is_value ? "values" : "keys"},
                      {"bytes", cache.bytes},
                      {"device", Name(cache.device)},
                      {"reason", cache.reason}});
    }
    return list;
  }

  Json Phase(const ExplainPhase& phase) const {
    return {{"tokens", phase.tokens},
            {"outputs", phase.outputs},
            {"counts", Counts(phase)},
            {"pipeline", {{"copies", phase.rotating_copies}, {"refusal", phase.pipeline_refusal}}},
            {"processes", Processes(phase)},
            {"memory", Memory(phase)},
            {"passes", Passes(phase)},
            {"splits", Splits(phase)},
            {"cuts", Cuts(phase)},
            {"nodes", Nodes(phase)},
            {"collectives", Collectives(phase)},
            {"rank_traffic", RankTraffic(phase)}};
  }

  static Json Collectives(const ExplainPhase& phase) {
    Json list = Json::array();
    for (const ExplainCollective& collective : phase.collectives) {
      Json predictions = Json::array();
      for (const AllReducePrediction& prediction : collective.predictions) {
        predictions.push_back({{"algorithm", CollectiveAlgorithmName(prediction.algorithm)},
                               {"expected_us", prediction.microseconds}});
      }
      list.push_back({{"group", collective.group},
                      {"kind", CollectiveKindName(collective.kind)},
                      {"algorithm", CollectiveAlgorithmName(collective.algorithm)},
                      {"wire", DTypeName(collective.wire)},
                      {"elements", collective.elements},
                      {"count", collective.count},
                      {"steps", collective.steps},
                      {"messages", collective.messages},
                      {"bytes", collective.bytes},
                      {"predictions", std::move(predictions)}});
    }
    return list;
  }

  Json RankTraffic(const ExplainPhase& phase) const {
    Json list = Json::array();
    for (const ExplainRankTraffic& rank : phase.rank_traffic) {
      list.push_back({{"device", Name(rank.device)},
                      {"messages", rank.messages},
                      {"bytes", rank.bytes},
                      {"bytes_per_token",
                       static_cast<double>(rank.bytes) / static_cast<double>(phase.tokens)}});
    }
    return list;
  }

  static Json Counts(const ExplainPhase& phase) {
    return {{"nodes", phase.nodes.size()},
            {"splits", phase.splits.size()},
            {"copies", phase.copies},
            {"copied_bytes", phase.copied_bytes},
            {"staged_bytes", phase.staged_bytes},
            {"input_bytes", phase.input_bytes},
            {"fused", phase.fused},
            {"resolved", phase.resolved},
            {"in_place", phase.in_place},
            {"split_nodes", phase.split_nodes},
            {"reductions", phase.reductions},
            {"gathers", phase.gathers},
            {"choices", phase.choices}};
  }

  static Json Processes(const ExplainPhase& phase) {
    Json list = Json::array();
    for (const ExplainProcess& process : phase.processes) {
      list.push_back({{"host", process.host},
                      {"executes", process.executes},
                      {"replies", process.replies},
                      {"sends", process.sends},
                      {"sent_bytes", process.sent_bytes},
                      {"receives", process.receives},
                      {"received_bytes", process.received_bytes}});
    }
    return list;
  }

  Json Memory(const ExplainPhase& phase) const {
    Json list = Json::array();
    for (size_t d = 0; d < phase.arenas.size(); ++d) {
      const ExplainArena& arena = phase.arenas[d];
      list.push_back({{"device", report_.devices[d].name},
                      {"arena_bytes", arena.bytes},
                      {"lower_bound_bytes", arena.lower_bound},
                      {"chunks", arena.chunks},
                      {"crossing_bytes", arena.crossing_bytes},
                      {"workspace_bytes", arena.workspace_bytes}});
    }
    return list;
  }

  Json Passes(const ExplainPhase& phase) const {
    Json list = Json::array();
    for (const ExplainPass& pass : phase.passes) {
      Json changes = Json::array();
      for (const ExplainChange& change : pass.changes) {
        changes.push_back({{"node", phase.nodes[change.node].id},
                           {"from", Name(change.from)},
                           {"to", Name(change.to)},
                           {"cause", change.cause},
                           {"why", change.why}});
      }
      Json object = {{"name", pass.name},
                     {"changed", pass.changes.size()},
                     {"changed_leafs_and_views", pass.other_changes},
                     {"changes", std::move(changes)}};
      if (options_.timings) object["seconds"] = pass.seconds;
      list.push_back(std::move(object));
    }
    return list;
  }

  Json Splits(const ExplainPhase& phase) const {
    Json list = Json::array();
    for (const ExplainSplit& split : phase.splits) {
      Json nodes = Json::array();
      for (int32_t i = split.begin; i < split.end; ++i) nodes.push_back(phase.nodes[i].id);
      Json inputs = Json::array();
      for (const ExplainInput& input : split.inputs) {
        inputs.push_back({{"kind", ReplicaKindName(input.kind)},
                          {"node", input.node},
                          {"label", input.label},
                          {"bytes", input.bytes},
                          {"from", Name(input.from)}});
      }
      list.push_back({{"device", Name(split.device)},
                      {"nodes", std::move(nodes)},
                      {"inputs", std::move(inputs)}});
    }
    return list;
  }

  Json Cuts(const ExplainPhase& phase) const {
    Json list = Json::array();
    for (const ExplainCut& cut : phase.cuts) {
      list.push_back({{"count", cut.count},
                      {"op", OpName(cut.op)},
                      {"layer_device", Name(cut.home)},
                      {"device", Name(cut.device)},
                      {"refused", cut.refused},
                      {"why", cut.why}});
    }
    return list;
  }

  Json Nodes(const ExplainPhase& phase) const {
    Json list = Json::array();
    for (const ExplainNode& node : phase.nodes) {
      list.push_back({{"id", node.id},
                      {"op", OpName(node.op)},
                      {"name", node.name},
                      {"label", node.label},
                      {"layer", node.layer},
                      {"device", Name(node.device)},
                      {"cause", node.cause},
                      {"why", node.why},
                      {"split", node.split},
                      {"bytes", node.bytes},
                      {"plain", node.plain}});
    }
    return list;
  }

  Json Remarks() const {
    Json list = Json::array();
    for (const ExplainRemark& remark : report_.remarks) {
      list.push_back({{"code", remark.code},
                      {"phase", remark.phase.empty() ? Json() : Json(remark.phase)},
                      {"text", remark.text},
                      {"action", remark.action.empty() ? Json() : Json(remark.action)}});
    }
    return list;
  }

  const ExplainReport& report_;
  const ExplainJsonOptions& options_;
};

}  // namespace

std::string ExplainJson(const ExplainReport& report, const ExplainJsonOptions& options) {
  return JsonWriter(report, options).Report().dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace weft
