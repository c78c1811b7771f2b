#include "coordinator/explain/explain_remarks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "coordinator/explain/memory_text.h"

namespace weft {
namespace {

constexpr size_t kMostCuts = 3;  // that a remark names

// What to do about a remark of the placement.
ExplainRemark FromPlacement(const PlacementRemark& remark) {
  const auto with = [&](const char* code, const char* action) {
    return ExplainRemark{code, "", remark.text, action};
  };
  switch (remark.kind) {
    case PlacementRemarkKind::kRuleWithoutMatch:
      return with("rule",
                  "the expression is searched in names like blk.0.attn_q.weight; weft inspect "
                  "lists them");
    case PlacementRemarkKind::kRuleShadowed:
      return with("rule", "put the narrower rule first");
    case PlacementRemarkKind::kFlagWithoutEffect:
      return with("flag", "leave the flag out");
    case PlacementRemarkKind::kCachesOnHost:
      return with("kv-in-host-memory",
                  "leave the flag out; where the caches do not fit, make them smaller with -c or "
                  "-ctk q8_0 -ctv q8_0");
    case PlacementRemarkKind::kRefusedCaches:
      return with("kv-in-host-memory",
                  "use caches of a type that the device takes (-ctk, -ctv), or leave these layers "
                  "to the host with a lower -ngl");
    case PlacementRemarkKind::kRefusedWeights:
      return with("refused-type",
                  "use a file with a type that the device runs, or leave these layers to the host "
                  "with a lower -ngl");
    case PlacementRemarkKind::kIdleDevices:
      return with("idle-device", "give it a share with -ts, raise -ngl, or leave it out");
    case PlacementRemarkKind::kTooLittleMemory:
      return with("memory", "fewer layers there (-ngl, -ts), or smaller weights");
  }
  return with("placement", "");
}

class RemarkMaker {
 public:
  explicit RemarkMaker(const ExplainReport& report) : report_(report) {}

  std::vector<ExplainRemark> Make(absl::Span<const PlacementRemark> placement) {
    for (const PlacementRemark& remark : placement) Add(FromPlacement(remark));
    for (const ExplainPhase& phase : report_.phases) {
      for (const std::string& text : phase.rank_remarks) Add({"ranks", phase.name, text, ""});
      for (const std::string& text : phase.remarks) {
        Add({"batch", phase.name, text, "give the batch to a device that reads those weights"});
      }
    }
    for (const ExplainPhase& phase : report_.phases) {
      Splits(phase);
      StagedWeights(phase);
      Pipeline(phase);
      Edges(phase);
      HandOffs(phase);
    }
    Memory();
    IdleAccelerators();
    return std::move(remarks_);
  }

 private:
  // The same remark of both phases is one.
  void Add(ExplainRemark remark) {
    for (ExplainRemark& known : remarks_) {
      if (known.code == remark.code && known.text == remark.text) {
        if (known.phase != remark.phase) known.phase.clear();
        return;
      }
    }
    remarks_.push_back(std::move(remark));
  }

  std::string Name(int32_t device) const {
    return device == kNoDevice ? "no device" : report_.devices[device].name;
  }

  std::string CutText(const ExplainCut& cut) const {
    return absl::StrCat(cut.count, " x ", AbslView(OpName(cut.op)), " on ", Name(cut.device), ": ",
                        cut.refused ? absl::StrCat(Name(cut.home), " refuses it: ") : "", cut.why);
  }

  // Splits that only copy the next weights to the same device cost nothing extra.
  void Splits(const ExplainPhase& phase) {
    int64_t splits = 0;
    int32_t before = kNoDevice;
    for (const ExplainSplit& split : phase.splits) {
      splits += split.device == before ? 0 : 1;
      before = split.device;
    }
    const auto devices = static_cast<int64_t>(report_.devices.size());
    if (splits <= 2 + 2 * devices || phase.cuts.empty()) return;
    const size_t named = std::min(kMostCuts, phase.cuts.size());
    const auto text = [this](std::string* out, const ExplainCut& cut) { *out += CutText(cut); };
    const bool refused = phase.cuts.front().refused;
    Add({"splits", phase.name,
         absl::StrCat(splits, " splits for ", devices, " devices, because of ",
                      absl::StrJoin(absl::MakeConstSpan(phase.cuts).first(named), "; ", text),
                      named < phase.cuts.size()
                          ? absl::StrCat("; and ", phase.cuts.size() - named, " more reasons")
                          : ""),
         refused
             ? "use weights of a type that the device runs, or leave these layers to the host "
               "with a lower -ngl"
             : "keep what a layer reads on one device: fewer layers with -ngl rather than parts "
               "of all of them, --n-cpu-moe N rather than --cpu-moe, fewer -ot rules"});
  }

  // Prompts repay a copy of weights; single tokens do not.
  void StagedWeights(const ExplainPhase& phase) {
    if (phase.name != "decode" || phase.staged_bytes == 0) return;
    Add({"staged-weights", phase.name,
         absl::StrCat("every step copies ", MemoryText(phase.staged_bytes),
                      " of weights between memories, ",
                      MemoryText(phase.staged_bytes / std::max<int64_t>(1, phase.tokens)),
                      " for each token"),
         "compute where those weights are: raise the batch from which devices ask for work "
         "(--op-offload-batch), switch it off (--no-op-offload), or place the weights elsewhere"});
  }

  void Pipeline(const ExplainPhase& phase) {
    if (phase.rotating_copies > 1 || phase.pipeline_refusal.empty()) return;
    std::vector<bool> used(report_.devices.size());
    for (const ExplainSplit& split : phase.splits) used[split.device] = true;
    if (std::count(used.begin(), used.end(), true) < 2) return;
    Add({"pipeline", phase.name, absl::StrCat("steps do not overlap: ", phase.pipeline_refusal),
         "without that the devices take turns; leave it out if another can do its part"});
  }

  // The first and the last node are where people expect them.
  void Edges(const ExplainPhase& phase) {
    if (phase.nodes.empty()) return;
    const ExplainNode& first = phase.nodes.front();
    if (first.device != report_.input_device) {
      Add({"input-layer", phase.name,
           absl::StrCat("the embedding is looked up on ", Name(first.device),
                        ", not on the input layer's ", Name(report_.input_device), ": ", first.why),
           "embeddings travel instead of token ids; see the rule that moved the weight"});
    }
    const ExplainNode& last = phase.nodes.back();
    const int32_t output =
        report_.layer_devices.empty() ? last.device : report_.layer_devices.back();
    if (last.device != output && last.layer < 0) {
      Add({"output-layer", phase.name,
           absl::StrCat("the output layer is on ", Name(output), ", but its product runs on ",
                        Name(last.device), ": ", last.why),
           "it reads the largest matrix for every token; move it with -ot"});
    }
  }

  // From one machine to the next goes one tensor where layers end there, and none elsewhere.
  void HandOffs(const ExplainPhase& phase) {
    using Hosts = std::pair<std::string, std::string>;
    std::map<Hosts, int64_t> expected;
    const auto host = [this](int32_t device) { return report_.devices[device].host; };
    int32_t before = report_.input_device;
    for (const int32_t device : report_.layer_devices) {
      if (host(before) != host(device)) ++expected[{host(before), host(device)}];
      before = device;
    }
    std::map<Hosts, std::vector<std::string>> crossing;
    for (const ExplainSplit& split : phase.splits) {
      for (const ExplainInput& input : split.inputs) {
        if (input.kind == ReplicaKind::kInput || input.from == kNoDevice) continue;
        if (host(input.from) == host(split.device)) continue;
        crossing[{host(input.from), host(split.device)}].push_back(input.label);
      }
    }
    for (const auto& [hosts, labels] : crossing) {
      const int64_t wanted = expected[hosts];
      if (static_cast<int64_t>(labels.size()) <= wanted) continue;
      const size_t named = std::min(kMostCuts, labels.size());
      Add({"hand-off", phase.name,
           absl::StrCat(labels.size(), " tensors go from ", hosts.first, " to ", hosts.second,
                        " in each step where ", wanted, " would do: ",
                        absl::StrJoin(absl::MakeConstSpan(labels).first(named), ", "),
                        named < labels.size() ? ", ..." : ""),
           "keep the last layer of a machine whole: its experts and caches on the device of the "
           "layer"});
    }
  }

  void Memory() {
    for (const ExplainDevice& device : report_.devices) {
      const int64_t needed = device.Sum() - (device.mapped ? device.weight_bytes : 0);
      if (device.memory_bytes == 0 || needed <= device.memory_bytes) continue;
      Add({"memory", "",
           absl::StrCat(
               device.name, " has ", MemoryText(device.memory_bytes), " and needs ",
               MemoryText(needed), ": ", MemoryText(device.weight_bytes), " of weights, ",
               MemoryText(device.cache_bytes), " of caches, ",
               MemoryText(device.arena_bytes + device.crossing_bytes + device.workspace_bytes),
               " to compute"),
           "fewer layers there (-ngl, -ts), a smaller context (-c), smaller caches (-ctk q8_0 -ctv "
           "q8_0) or a smaller batch (--batch, -ub)"});
    }
  }

  void IdleAccelerators() {
    for (size_t d = 0; d < report_.devices.size(); ++d) {
      if (report_.devices[d].kind != DeviceKindName(DeviceKind::kAccelerator)) continue;
      const bool used =
          std::any_of(report_.phases.begin(), report_.phases.end(), [&](const ExplainPhase& phase) {
            return std::any_of(
                phase.nodes.begin(), phase.nodes.end(),
                [&](const ExplainNode& node) { return node.device == static_cast<int32_t>(d); });
          });
      if (used) continue;
      Add({"idle-accelerator", "", absl::StrCat(report_.devices[d].name, " computes nothing"),
           "it takes large products of F32, F16 and BF16 weights only; leave it out, or raise "
           "--batch"});
    }
  }

  const ExplainReport& report_;
  std::vector<ExplainRemark> remarks_;
};

}  // namespace

std::vector<ExplainRemark> MakeExplainRemarks(const ExplainReport& report,
                                              absl::Span<const PlacementRemark> placement) {
  return RemarkMaker(report).Make(placement);
}

}  // namespace weft
