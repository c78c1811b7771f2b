#include "coordinator/cli/placement_flags.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/collectives/wire_format.h"

namespace weft {
namespace {

// Of the flags in --help.
constexpr const char* kGroup = "Placement";
constexpr const char* kDefaultSplitMode = "layer";

absl::StatusOr<int64_t> ParseLayers(const std::string& text) {
  int64_t layers = 0;
  if (text == "all") return -1;
  if (absl::SimpleAtoi(text, &layers)) return layers < 0 ? -1 : layers;
  return absl::InvalidArgumentError(
      absl::StrCat("--n-gpu-layers: '", text, "': want a number of layers, or all"));
}

absl::StatusOr<std::vector<double>> ParseShares(const std::string& text) {
  std::vector<double> shares;
  if (text.empty()) return shares;
  for (const absl::string_view piece : absl::StrSplit(text, absl::ByAnyChar(",/"))) {
    double share = 0;
    if (!absl::SimpleAtod(piece, &share)) {
      return absl::InvalidArgumentError(absl::StrCat("--tensor-split: '", piece, "' of '", text,
                                                     "': want numbers separated by commas"));
    }
    shares.push_back(share);
  }
  return shares;
}

absl::StatusOr<SplitMode> ParseSplitMode(const PlacementFlags& flags) {
  const std::string text = flags.split_mode.value_or(kDefaultSplitMode);
  // --layout says how tensors are split, and would win.
  if (!flags.layout.empty() && flags.split_mode && text != "tensor") {
    return absl::InvalidArgumentError(
        absl::StrCat("--split-mode ", text, " and --layout contradict each other"));
  }
  if (text == "none") return SplitMode::kNone;
  if (text == "layer") return SplitMode::kLayer;
  if (text == "tensor") return SplitMode::kTensor;
  return absl::InvalidArgumentError(
      absl::StrCat("--split-mode: '", text, "': want none, layer or tensor"));
}

// "tp=2,pp=2".
absl::Status ParseLayout(const std::string& text, PlacementOptions& placement) {
  for (const absl::string_view piece : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(piece, absl::MaxSplits('=', 1));
    int64_t number = 0;
    const bool known = parts.first == "tp" || parts.first == "pp";
    if (!known || !absl::SimpleAtoi(parts.second, &number) || number < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--layout: '", text, "': want tp=N (devices of a group), pp=N (groups), or both"));
    }
    if (absl::StrContains(text.substr(0, piece.data() - text.data()), parts.first)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--layout: '", text, "' says ", parts.first, " twice"));
    }
    (parts.first == "tp" ? placement.tensor_ranks : placement.layer_groups) = number;
  }
  placement.split_mode = SplitMode::kTensor;
  return absl::OkStatus();
}

// How the ranks of a tensor split add up. What asks for something else than the default has no
// meaning without ranks.
absl::Status ParseReductions(const PlacementFlags& flags, SplitMode mode, PlanOptions& plan) {
  const std::optional<DType> wire = DTypeFromName(flags.wire_type);
  if (!wire || !(*wire == DType::kF32 || IsLossyWire(*wire))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--wire-type: '", flags.wire_type, "': want f32, bf16 or q8_0"));
  }
  plan.wire = *wire;
  if (flags.all_reduce == "doubling") {
    plan.all_reduce = AllReducePolicy::kDoubling;
  } else if (flags.all_reduce == "scatter-gather") {
    plan.all_reduce = AllReducePolicy::kByParts;
  } else if (flags.all_reduce != "auto") {
    return absl::InvalidArgumentError(absl::StrCat("--allreduce: '", flags.all_reduce,
                                                   "': want auto, doubling or scatter-gather"));
  }
  if (flags.overlap == "on") {
    plan.overlap = OverlapPolicy::kOn;
  } else if (flags.overlap == "off") {
    plan.overlap = OverlapPolicy::kOff;
  } else if (flags.overlap != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("--overlap: '", flags.overlap, "': want auto, on or off"));
  }
  if (mode == SplitMode::kTensor) return absl::OkStatus();
  const char* flag = nullptr;
  if (plan.overlap != OverlapPolicy::kAuto) flag = "--overlap";
  if (plan.all_reduce != AllReducePolicy::kAuto) flag = "--allreduce";
  if (plan.wire != DType::kF32) flag = "--wire-type";
  if (flag == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flag, ": nothing is summed over devices without --split-mode tensor or --layout"));
}

// Finds where an expression's brackets are open: a comma there belongs to it.
class BracketScanner {
 public:
  // Takes the next character; true if it is a comma outside all brackets.
  bool IsSeparator(char c) {
    if (escaped_) {
      escaped_ = false;
      return false;
    }
    if (c == '\\') {
      escaped_ = true;
    } else if (in_class_) {
      in_class_ = c != ']';
    } else if (c == '[') {
      in_class_ = true;
    } else if (c == '(' || c == '{') {
      ++depth_;
    } else if ((c == ')' || c == '}') && depth_ > 0) {
      --depth_;
    }
    return c == ',' && depth_ == 0 && !in_class_;
  }

 private:
  bool escaped_ = false;
  bool in_class_ = false;
  int64_t depth_ = 0;
};

absl::StatusOr<OverrideRule> ParseOverride(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--override-tensor: '", AbslView(text.substr(0, 256)), "': want REGEX=DEVICE"));
  }
  return OverrideRule{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

// Which device holds what.
void AddHoldingFlags(CLI::App& command, PlacementFlags& flags) {
  command
      .add_option("--ngl,--n-gpu-layers,--gpu-layers", flags.n_gpu_layers,
                  "how many layers, counted from the last and with the output layer, go to the "
                  "listed devices; the others stay on the host's CPU (-ngl)")
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--main-device,--main-gpu,--mg", flags.main_device,
                  "device of --split-mode none: name, or position among those that hold layers "
                  "(-mg)")
      ->group(kGroup);
  command
      .add_option("--ts,--tensor-split", flags.tensor_split,
                  "share of each device, as 3,1; without it by free memory (-ts)")
      ->group(kGroup);
  command
      .add_option("--sm,--split-mode", flags.split_mode,
                  "none: one device; layer: whole layers; tensor: every layer over all (-sm)")
      ->default_str(kDefaultSplitMode)
      ->group(kGroup);
  command
      .add_option(
          "--layout", flags.layout,
          "tensor split in groups: tp=2,pp=2 cuts every layer over two devices and spreads the "
          "layers over two such groups; either number may be left out")
      ->group(kGroup);
  command
      .add_option("--wire-type", flags.wire_type,
                  "as what the sums of a tensor split travel: f32, bf16 or q8_0; narrower types "
                  "round")
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--allreduce", flags.all_reduce,
                  "how they are made: doubling (fewest steps), scatter-gather (fewest bytes), or "
                  "auto: what the links make fastest")
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option(
          "--overlap", flags.overlap,
          "whether they travel while the ranks compute: on (a large step in two halves, one "
          "computes while the other's sums travel), off, or auto: on where ranks reach each other "
          "over a network")
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--ot,--override-tensor", flags.overrides,
                  "REGEX=DEVICE: weights whose name matches go there, the first rule wins; cpu is "
                  "the CPU of the host of the layer's device; repeatable, or a comma list (-ot)")
      ->allow_extra_args(false)
      ->group(kGroup);
  command.add_flag("--cpu-moe", flags.cpu_moe, "experts of all layers on the host's CPU")
      ->group(kGroup);
  command
      .add_option("--n-cpu-moe", flags.n_cpu_moe,
                  "experts of this many first layers on the host's CPU")
      ->group(kGroup);
  command
      .add_flag("--no-kv-offload", flags.no_kv_offload,
                "keep the KV cache in host memory and compute attention there")
      ->group(kGroup);
}

// Which device computes what.
void AddComputingFlags(CLI::App& command, PlacementFlags& flags) {
  command
      .add_flag("--no-op-offload", flags.no_op_offload,
                "never copy a weight of host memory to a device to compute there")
      ->group(kGroup);
  command
      .add_option("--op-offload-batch", flags.op_offload_batch,
                  "from how many tokens on that is done; 0: as the device says, mostly 32")
      ->group(kGroup);
  command
      .add_option("--device-batch", flags.device_batch,
                  "batch sizes of devices, as w0.gpu0:32-,cpu:-31")
      ->group(kGroup);
  command
      .add_option("--accel", flags.accelerators,
                  "blas: large products of unquantised weights by OpenBLAS; its bits differ from "
                  "weft's own")
      ->allow_extra_args(false)
      ->group(kGroup);
}

}  // namespace

void AddPlacementFlags(CLI::App& command, PlacementFlags& flags) {
  AddHoldingFlags(command, flags);
  AddComputingFlags(command, flags);
}

absl::StatusOr<std::vector<OverrideRule>> ParseOverrides(std::string_view text) {
  std::vector<OverrideRule> rules;
  BracketScanner scanner;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && !scanner.IsSeparator(text[i])) continue;
    ASSIGN_OR_RETURN(OverrideRule rule, ParseOverride(text.substr(start, i - start)));
    rules.push_back(std::move(rule));
    start = i + 1;
    scanner = BracketScanner();
  }
  return rules;
}

absl::StatusOr<PlacementRequest> ParsePlacementFlags(const PlacementFlags& flags) {
  PlacementRequest request;
  PlacementOptions& placement = request.placement;
  ASSIGN_OR_RETURN(placement.n_gpu_layers, ParseLayers(flags.n_gpu_layers));
  placement.main_device = flags.main_device;
  ASSIGN_OR_RETURN(placement.tensor_split, ParseShares(flags.tensor_split));
  ASSIGN_OR_RETURN(placement.split_mode, ParseSplitMode(flags));
  if (!flags.layout.empty()) RETURN_IF_ERROR(ParseLayout(flags.layout, placement));
  RETURN_IF_ERROR(ParseReductions(flags, placement.split_mode, request.plan));
  for (const std::string& text : flags.overrides) {
    ASSIGN_OR_RETURN(std::vector<OverrideRule> rules, ParseOverrides(text));
    for (OverrideRule& rule : rules) placement.overrides.push_back(std::move(rule));
  }
  placement.cpu_moe = flags.cpu_moe;
  if (flags.n_cpu_moe < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--n-cpu-moe: ", flags.n_cpu_moe, " layers, want 0 or more"));
  }
  placement.n_cpu_moe = flags.n_cpu_moe;
  placement.kv_offload = !flags.no_kv_offload;
  request.plan.op_offload = !flags.no_op_offload;
  if (flags.op_offload_batch < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--op-offload-batch: ", flags.op_offload_batch, " tokens, want 0 or more"));
  }
  request.plan.offload_batch = flags.op_offload_batch;
  ASSIGN_OR_RETURN(request.device_batches, ParseDeviceBatches(flags.device_batch));
  for (const std::string& accelerator : flags.accelerators) {
    if (accelerator != "blas") {
      return absl::InvalidArgumentError(
          absl::StrCat("--accel: '", accelerator, "': the only accelerator is blas"));
    }
    request.blas = true;
  }
  return request;
}

}  // namespace weft
