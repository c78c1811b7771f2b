#include "coordinator/explain/page_data.h"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/check.h"

namespace weft {

// Numbers stand for positions in the lists `texts`, `places`, `graphs` and `plans`.
class PageData::Encoder {
 public:
  using Json = nlohmann::ordered_json;

  Encoder(const ExplainReport& report, absl::Span<const ExplainToggle> toggles) {
    page_["model"] = {{"name", report.model},
                      {"architecture", report.architecture},
                      {"layers", report.layers},
                      {"experts", report.experts}};
    page_["options"] = {{"batch", report.batch},
                        {"sequences", report.sequences},
                        {"context", report.context},
                        {"key_type", report.key_type},
                        {"value_type", report.value_type}};
    Json devices = Json::array();
    for (const ExplainDevice& device : report.devices) {
      devices.push_back({{"name", device.name},
                         {"kind", device.kind},
                         {"host", device.host},
                         {"memory", device.memory_bytes}});
    }
    page_["devices"] = std::move(devices);
    Json list = Json::array();
    for (const ExplainToggle& toggle : toggles) {
      Json choices = Json::array();
      for (const ExplainChoice& choice : toggle.choices) choices.push_back(choice.label);
      list.push_back(
          {{"name", toggle.name}, {"choices", std::move(choices)}, {"given", toggle.given}});
    }
    page_["toggles"] = std::move(list);
  }

  void Add(const ExplainReport& report) {
    Json phases = Json::array();
    for (const ExplainPhase& phase : report.phases) phases.push_back(Plan(phase));
    Json memory = Json::array();
    for (const ExplainDevice& device : report.devices) {
      memory.push_back({device.weight_bytes, device.cache_bytes, device.arena_bytes,
                        device.crossing_bytes, device.workspace_bytes});
    }
    Json remarks = Json::array();
    for (const ExplainRemark& remark : report.remarks) {
      remarks.push_back(
          {Word(remark.code), Word(remark.phase), Word(remark.text), Word(remark.action)});
    }
    variants_.push_back({{"phases", std::move(phases)},
                         {"memory", std::move(memory)},
                         {"layers", report.layer_devices},
                         {"input", report.input_device},
                         {"remarks", std::move(remarks)}});
  }

  void AddRefused(const std::string& reason) { variants_.push_back({{"refused", reason}}); }

  std::string Text() const {
    Json page = page_;
    page["ops"] = ops_;
    page["texts"] = texts_;
    page["places"] = places_;
    page["graphs"] = graphs_;
    page["plans"] = plans_;
    page["variants"] = variants_;
    const std::string text = page.dump(-1, ' ', true, Json::error_handler_t::replace);
    std::string escaped;
    escaped.reserve(text.size());
    for (const char c : text) {
      if (c == '<') {
        escaped += "\\u003c";
      } else if (c == '>') {
        escaped += "\\u003e";
      } else if (c == '&') {
        escaped += "\\u0026";
      } else {
        escaped += c;
      }
    }
    return escaped;
  }

 private:
  // Position of `value` in `list`, where it is put if it is new.
  template <typename Key>
  static int32_t Pooled(absl::flat_hash_map<Key, int32_t>& known, Json& list, const Key& key,
                        Json value) {
    const auto [found, fresh] = known.try_emplace(key, static_cast<int32_t>(list.size()));
    if (fresh) list.push_back(std::move(value));
    return found->second;
  }

  int32_t Word(const std::string& text) { return Pooled(known_texts_, texts_, text, Json(text)); }

  int32_t Place(const ExplainChange& change) {
    const std::tuple<int32_t, int32_t, int32_t> key = {change.to, Word(change.cause),
                                                       Word(change.why)};
    return Pooled(known_places_, places_, key,
                  {std::get<0>(key), std::get<1>(key), std::get<2>(key)});
  }

  // What is the same in all plans of a graph. By node: op, layer, label, bytes of the result.
  int32_t GraphOf(const ExplainPhase& phase) {
    Json graph = {{"ops", Json::array()},
                  {"layers", Json::array()},
                  {"labels", Json::array()},
                  {"bytes", Json::array()}};
    for (const ExplainNode& node : phase.nodes) {
      const std::string op(OpName(node.op));
      graph["ops"].push_back(Pooled(known_ops_, ops_, op, Json(op)));
      graph["layers"].push_back(node.layer);
      graph["labels"].push_back(Word(node.label));
      graph["bytes"].push_back(node.bytes);
    }
    const std::string key = graph.dump();
    return Pooled(known_graphs_, graphs_, key, std::move(graph));
  }

  // [steps to the next changed node, its new place, ...]
  Json Changes(const ExplainPass& pass) {
    Json changes = Json::array();
    int32_t before = 0;
    for (const ExplainChange& change : pass.changes) {
      changes.push_back(change.node - before);
      changes.push_back(Place(change));
      before = change.node;
    }
    return changes;
  }

  Json Passes(const ExplainPhase& phase) {
    Json passes = Json::array();
    for (const ExplainPass& pass : phase.passes) {
      passes.push_back(
          {{"name", pass.name}, {"changes", Changes(pass)}, {"others", pass.other_changes}});
    }
    return passes;
  }

  // [device, end, [[kind, label, bytes, from], ...]]; a split begins where the one before ends.
  Json Splits(const ExplainPhase& phase) {
    Json splits = Json::array();
    for (const ExplainSplit& split : phase.splits) {
      Json inputs = Json::array();
      for (const ExplainInput& input : split.inputs) {
        inputs.push_back({Word(std::string(ReplicaKindName(input.kind))), Word(input.label),
                          input.bytes, input.from});
      }
      splits.push_back({split.device, split.end, std::move(inputs)});
    }
    return splits;
  }

  int32_t Plan(const ExplainPhase& phase) {
    Json arenas = Json::array();
    for (const ExplainArena& arena : phase.arenas) {
      arenas.push_back({arena.bytes, arena.lower_bound,
                        arena.crossing_bytes * phase.rotating_copies, arena.workspace_bytes});
    }
    Json processes = Json::array();
    for (const ExplainProcess& process : phase.processes) {
      processes.push_back({Word(process.host), process.executes, process.replies, process.sends,
                           process.sent_bytes, process.receives, process.received_bytes});
    }
    Json plan = {{"name", phase.name},
                 {"tokens", phase.tokens},
                 {"graph", GraphOf(phase)},
                 {"passes", Passes(phase)},
                 {"splits", Splits(phase)},
                 {"arenas", std::move(arenas)},
                 {"processes", std::move(processes)},
                 {"copies", phase.copies},
                 {"copied", phase.copied_bytes},
                 {"staged", phase.staged_bytes},
                 {"inputs", phase.input_bytes},
                 {"rotating", phase.rotating_copies},
                 {"refusal", Word(phase.pipeline_refusal)}};
    const std::string key = plan.dump();
    return Pooled(known_plans_, plans_, key, std::move(plan));
  }

  Json page_ = Json::object();
  Json ops_ = Json::array();
  Json texts_ = Json::array();
  Json places_ = Json::array();
  Json graphs_ = Json::array();
  Json plans_ = Json::array();
  Json variants_ = Json::array();
  absl::flat_hash_map<std::string, int32_t> known_ops_;
  absl::flat_hash_map<std::string, int32_t> known_texts_;
  absl::flat_hash_map<std::tuple<int32_t, int32_t, int32_t>, int32_t> known_places_;
  absl::flat_hash_map<std::string, int32_t> known_graphs_;
  absl::flat_hash_map<std::string, int32_t> known_plans_;
};

PageData::PageData(const ExplainReport& report, absl::Span<const ExplainToggle> toggles)
    : encoder_(std::make_unique<Encoder>(report, toggles)) {}
PageData::~PageData() = default;

void PageData::Add(const ExplainReport& report) { encoder_->Add(report); }
void PageData::AddRefused(const std::string& reason) { encoder_->AddRefused(reason); }
std::string PageData::Text() const { return encoder_->Text(); }

}  // namespace weft
