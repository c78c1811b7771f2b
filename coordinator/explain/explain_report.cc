#include "coordinator/explain/explain_report.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "coordinator/engine/held_slices.h"
#include "coordinator/engine/model_plan.h"
#include "coordinator/engine/overlap.h"
#include "coordinator/engine/rank_groups.h"
#include "coordinator/engine/runner_options.h"
#include "coordinator/engine/step_plan.h"
#include "coordinator/explain/explain_collectives.h"
#include "coordinator/explain/explain_phase.h"
#include "coordinator/explain/explain_remarks.h"
#include "coordinator/explain/held_bytes.h"
#include "coordinator/placement/model_placement.h"
#include "coordinator/scheduler/plan_context.h"

namespace weft {
namespace {

constexpr int64_t kMaxBatch = 65536;
constexpr int64_t kMaxSequences = 4096;
constexpr int64_t kMaxPages = int64_t{1} << 27;

absl::Status CheckOptions(const Model& model, const ExplainOptions& options) {
  if (options.sequences < 1 || options.sequences > kMaxSequences) {
    return absl::InvalidArgumentError(
        absl::StrCat("--sequences: ", options.sequences, " sequences, want 1 to ", kMaxSequences));
  }
  RunnerOptions runner;
  runner.context = options.context;
  runner.sequences = options.sequences;
  runner.key_type = options.key_type;
  runner.value_type = options.value_type;
  RETURN_IF_ERROR(CheckRunnerOptions(model, runner));
  const int64_t most = std::min(kMaxBatch, options.context);
  if (options.batch < 1 || options.batch > most) {
    return absl::InvalidArgumentError(absl::StrCat("--batch: ", options.batch,
                                                   " tokens, want 1 to ", most,
                                                   " with a context of ", options.context));
  }
  if (CeilDivide(options.context, kPageTokens) > kMaxPages / options.sequences) {
    return absl::InvalidArgumentError(absl::StrCat("-c: ", options.sequences, " sequences of ",
                                                   options.context,
                                                   " tokens are more than a page table holds"));
  }
  return absl::OkStatus();
}

// By rank its machine, counted from 0.
std::vector<int32_t> MachinesOf(absl::Span<Device* const> ranks) {
  std::vector<std::string> known;
  std::vector<int32_t> machines;
  for (const Device* rank : ranks) {
    const auto at = std::find(known.begin(), known.end(), rank->machine());
    machines.push_back(static_cast<int32_t>(at - known.begin()));
    if (at == known.end()) known.push_back(rank->machine());
  }
  return machines;
}

GraphShape ShapeOf(const ExplainOptions& options, int64_t tokens) {
  GraphShape shape;
  shape.tokens = tokens;
  shape.outputs = std::min(tokens, options.sequences);
  shape.sequences = options.sequences;
  shape.pages_per_sequence = CeilDivide(options.context, kPageTokens);
  shape.pages = 1 + shape.pages_per_sequence * options.sequences;
  shape.context = options.context;
  shape.key_type = options.key_type;
  shape.value_type = options.value_type;
  return shape;
}

class ReportMaker {
 public:
  ReportMaker(const Model& model, absl::Span<Device* const> devices, const ExplainOptions& options)
      : model_(model), options_(options), plan_options_(options.plan) {
    plan_options_.pipeline = true;
    placed_.devices.assign(devices.begin(), devices.end());
    placed_.batch_ranges = options.batch_ranges;
  }

  absl::StatusOr<ExplainReport> Make() {
    RETURN_IF_ERROR(CheckOptions(model_, options_));
    PlacementOptions placement = options_.placement;
    ASSIGN_OR_RETURN(groups_, GroupDevices(placed_, placement));
    // They count devices that are in groups now.
    if (!groups_.empty()) placed_.batch_ranges.clear();
    placed_.rank_links = RankLinks(placed_.devices, options_.links);
    plan_options_.overlap = ResolveOverlap(plan_options_.overlap, placed_.devices, options_.links);
    placement.key_type = options_.key_type;
    placement.value_type = options_.value_type;
    ASSIGN_OR_RETURN(placed_.placement, PlaceModel(model_, placed_.devices, placement));
    ASSIGN_OR_RETURN(held_, HoldSlices(model_, placed_));
    Describe();
    AddDevices();
    AddGroups();
    AddWeights();
    RETURN_IF_ERROR(AddCaches());
    RETURN_IF_ERROR(AddPhase("prefill", options_.batch));
    RETURN_IF_ERROR(AddPhase("decode", options_.sequences));
    SumMemory();
    report_.remarks = MakeExplainRemarks(report_, placed_.placement.remarks);
    return std::move(report_);
  }

 private:
  // The position of a device of the placement among those shown: of a group, of its first rank.
  int32_t Shown(int32_t device) const { return held_.layout.ranks[device].front(); }

  void AddGroups() {
    for (size_t d = 0; d < groups_.size(); ++d) {
      report_.groups.push_back({groups_[d]->name(), held_.layout.ranks[d], placed_.rank_shares[d],
                                placed_.rank_links[d], MachinesOf(groups_[d]->ranks())});
    }
  }

  void Describe() {
    const Hyperparameters& h = model_.hyperparameters();
    report_.model = h.name;
    report_.architecture = h.architecture;
    report_.layers = h.n_layer;
    report_.experts = h.n_expert;
    report_.batch = options_.batch;
    report_.sequences = options_.sequences;
    report_.context = options_.context;
    report_.key_type = std::string(DTypeName(options_.key_type));
    report_.value_type = std::string(DTypeName(options_.value_type));
    for (const int32_t device : placed_.placement.layer_devices) {
      report_.layer_devices.push_back(Shown(device));
    }
    report_.input_device = Shown(placed_.placement.input_device);
  }

  void AddDevices() {
    for (size_t d = 0; d < held_.layout.devices.size(); ++d) {
      Device& device = *held_.layout.devices[d];
      ExplainDevice shown;
      shown.name = device.name();
      shown.kind = std::string(DeviceKindName(device.kind()));
      shown.host = device.host();
      shown.description = device.description();
      shown.memory_bytes = device.memory().total_bytes;
      shown.batch =
          d < placed_.batch_ranges.size() ? placed_.batch_ranges[d] : device.preferred_batch();
      shown.mapped = device.capabilities().wraps_host_memory;
      report_.devices.push_back(std::move(shown));
    }
  }

  int32_t LayerDevice(const Weight& weight) const {
    if (weight.role == WeightRole::kTokenEmbedding) return report_.input_device;
    return weight.layer < 0 ? report_.layer_devices.back() : report_.layer_devices[weight.layer];
  }

  void AddWeights() {
    for (size_t i = 0; i < model_.weights().size(); ++i) {
      const Weight& weight = model_.weights()[i];
      const int32_t home = placed_.placement.weights[i];
      const int32_t device = Shown(home);
      ExplainWeight shown;
      shown.name = weight.name;
      shown.type = std::string(DTypeName(weight.layout.dtype));
      shown.layer = weight.layer;
      shown.bytes = placed_.devices[home]->buffer_type().TensorBytes(weight.layout);
      shown.device = device;
      if (held_.layout.ranks[home].size() > 1) {
        shown.split = SplitText(held_.layout.weights[i].state);
      }
      shown.reason = placed_.placement.weight_reasons[i];
      shown.with_layer = device == LayerDevice(weight);
      if (weight.parts.size() == 1 && weight.parts[0] != weight.name) {
        shown.tensor = weight.parts[0];
      }
      report_.weights.push_back(std::move(shown));
    }
  }

  // And what each device holds.
  absl::Status AddCaches() {
    const int64_t pages = ShapeOf(options_, 1).pages;
    for (size_t i = 0; i < model_.caches().size(); ++i) {
      const CacheSpec& cache = model_.caches()[i];
      const DType dtype = cache.is_value ? options_.value_type : options_.key_type;
      ASSIGN_OR_RETURN(const TensorLayout layout, PackedLayout(dtype, cache.PageExtents(pages)));
      const int32_t home = placed_.placement.caches[i];
      const int64_t bytes = placed_.devices[home]->buffer_type().TensorBytes(layout);
      report_.caches.push_back(
          {cache.layer, cache.is_value, bytes, Shown(home), placed_.placement.cache_reasons[i]});
    }
    ASSIGN_OR_RETURN(
        const std::vector<HeldBytes> held,
        CountHeldBytes(model_, placed_, held_, {options_.key_type, options_.value_type, pages}));
    for (size_t d = 0; d < held.size(); ++d) {
      report_.devices[d].weights = held[d].weights;
      report_.devices[d].weight_bytes = held[d].weight_bytes;
      report_.devices[d].cache_bytes = held[d].cache_bytes;
    }
    return absl::OkStatus();
  }

  absl::Status AddPhase(const std::string& name, int64_t tokens) {
    GraphShape shape = ShapeOf(options_, tokens);
    shape.halves = InHalves(plan_options_, held_, tokens);
    ASSIGN_OR_RETURN(const ModelGraph built, model_.BuildGraph(shape));
    if (held_.split) return AddRankPhase(name, built.graph, shape);
    const PlanInput input = MakePlanInput(built.graph, placed_, tokens, plan_options_);
    ASSIGN_OR_RETURN(const PlanContext context, PlanContext::Create(input));
    ASSIGN_OR_RETURN(ExplainPhase phase,
                     MakeExplainPhase(name, context, report_.layer_devices, options_.clock));
    phase.outputs = shape.outputs;
    report_.phases.push_back(std::move(phase));
    return absl::OkStatus();
  }

  // The phase of the graph rank by rank, whose nodes are all where a rank is.
  absl::Status AddRankPhase(const std::string& name, const Graph& graph, const GraphShape& shape) {
    ASSIGN_OR_RETURN(const std::unique_ptr<RankGraph> ranks,
                     ExpandStep(graph, placed_, held_, shape.tokens, plan_options_));
    ASSIGN_OR_RETURN(const PlanContext context, PlanContext::Create(ranks->input));
    // Without layers' devices: a change of ranks is no cut that somebody is to blame for.
    ASSIGN_OR_RETURN(ExplainPhase phase, MakeExplainPhase(name, context, {}, options_.clock));
    phase.outputs = shape.outputs;
    phase.split_nodes = ranks->split_nodes;
    phase.reductions = ranks->reductions;
    phase.gathers = ranks->gathers;
    phase.choices = ranks->choices;
    phase.rank_remarks = ranks->remarks;
    if (shape.halves) {
      phase.rank_remarks.push_back(
          absl::StrCat("in two halves of ", shape.tokens / 2,
                       " tokens: one is computed while the other's sums travel (--overlap)"));
    }
    for (ExplainNode& node : phase.nodes) NameRank(node);
    ExplainCollectives(context, report_.groups, phase);
    report_.phases.push_back(std::move(phase));
    return absl::OkStatus();
  }

  void NameRank(ExplainNode& node) const {
    for (const ExplainGroup& group : report_.groups) {
      const auto rank = std::find(group.ranks.begin(), group.ranks.end(), node.device);
      if (rank == group.ranks.end()) continue;
      node.cause = "rank";
      node.why = absl::StrCat("rank ", rank - group.ranks.begin(), " of ", group.name);
    }
  }

  void SumMemory() {
    for (size_t d = 0; d < report_.devices.size(); ++d) {
      ExplainDevice& device = report_.devices[d];
      for (const ExplainPhase& phase : report_.phases) {
        const ExplainArena& arena = phase.arenas[d];
        device.arena_bytes = std::max(device.arena_bytes, arena.bytes);
        device.crossing_bytes =
            std::max(device.crossing_bytes, arena.crossing_bytes * phase.rotating_copies);
        device.workspace_bytes = std::max(device.workspace_bytes, arena.workspace_bytes);
      }
    }
  }

  const Model& model_;
  const ExplainOptions& options_;
  PlanOptions plan_options_;
  std::vector<std::unique_ptr<MetaDevice>> groups_;  // empty without --split-mode tensor
  PlacedDevices placed_;
  HeldSlices held_;
  ExplainReport report_;
};

}  // namespace

absl::StatusOr<ExplainReport> MakeExplainReport(const Model& model,
                                                absl::Span<Device* const> devices,
                                                const ExplainOptions& options) {
  return ReportMaker(model, devices, options).Make();
}

}  // namespace weft
