#include "coordinator/meta/rank_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/meta/rank_exchange.h"
#include "coordinator/meta/rank_nodes.h"
#include "coordinator/meta/split_rules.h"
#include "coordinator/meta/unlike_ranks.h"

namespace weft {
namespace {

// Remarks of one kind are kept up to here.
constexpr size_t kMostRemarks = 16;

// What the host fills is where it is asked for: the scheduler replicates it.
constexpr int32_t kEverywhere = -1;

class Expander {
 public:
  Expander(const PlanContext& context, const Plan& plan, const RankLayout& layout)
      : context_(context), graph_(context.graph()), plan_(plan), layout_(layout) {
    PlanInput& input = result_->input;
    for (size_t d = 0; d < layout_.ranks.size(); ++d) {
      const std::vector<int32_t>& ranks = layout_.ranks[d];
      RankExchange& exchange = exchanges_.emplace_back(nodes_, ranks);
      unlike_.push_back(UnlikeRanks(layout_.devices, ranks));
      if (ranks.size() < 2 || layout_.exchange == ExchangeKind::kCopies) continue;
      const PlanOptions& options = context_.input().options;
      exchange.UseCollectives(static_cast<int32_t>(input.communicators.size()), options.wire,
                              options.overlap == OverlapPolicy::kOn, counter_);
      input.communicators.push_back(ranks);
      input.communicator_links.push_back(d < layout_.links.size() ? layout_.links[d]
                                                                  : LinkModels{});
    }
    held_.resize(graph_.nodes().size());
  }

  absl::StatusOr<std::unique_ptr<RankGraph>> Run() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const NodeId id{i};
      if (graph_.IsLeaf(id)) {
        RETURN_IF_ERROR(EmitLeaf(id));
      } else {
        RETURN_IF_ERROR(EmitNode(id));
      }
      if (graph_.node(id).output) RETURN_IF_ERROR(MarkOutput(id));
    }
    return Finish();
  }

 private:
  // A tensor of the whole graph, where it was made.
  struct Held {
    int32_t group = kEverywhere;
    RankTensors tensors;
    // Other states, and other groups, it was brought to.
    std::vector<std::pair<int32_t, RankTensors>> copies;
  };

  const std::vector<int32_t>& Ranks(int32_t group) const { return layout_.ranks[group]; }

  absl::Status EmitLeaf(NodeId id) {
    const LeafAttributes& leaf = *graph_.leaf(id);
    const Node& node = graph_.node(id);
    Held& held = held_[Index(id)];
    if (leaf.kind != LeafKind::kWeight && leaf.kind != LeafKind::kCache) {
      held.tensors.by_rank = {nodes_.Leaf(leaf, node.layout, -1, node.name)};
      return absl::OkStatus();
    }
    held.group = plan_.assignments[Index(id)].device;
    const LeafSlices& slices =
        leaf.kind == LeafKind::kWeight ? layout_.weights[leaf.id] : layout_.caches[leaf.id];
    held.tensors.state = slices.state;
    for (size_t r = 0; r < Ranks(held.group).size(); ++r) {
      if (slices.ids[r] < 0) {
        held.tensors.by_rank.push_back(kNothing);
        continue;
      }
      ASSIGN_OR_RETURN(const TensorLayout layout,
                       CacheOrWeightLayout(node.layout, slices.state, static_cast<int32_t>(r)));
      held.tensors.by_rank.push_back(
          nodes_.Leaf({leaf.kind, slices.ids[r]}, layout, Ranks(held.group)[r], node.name));
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<TensorLayout> CacheOrWeightLayout(const TensorLayout& whole,
                                                          const SplitState& state, int32_t rank) {
    return state.cut() ? SliceLayout(whole, state, rank) : whole;
  }

  // The group that runs a node: views are where their source is.
  int32_t GroupOf(NodeId id) const {
    if (!graph_.Executes(id)) {
      return held_[Index(graph_.node(id).sources[0])].group;
    }
    return plan_.assignments[Index(id)].device;
  }

  // `id` on `group` as `wanted`.
  absl::StatusOr<RankTensors> Bring(NodeId id, int32_t group, const SplitState& wanted) {
    const Held& held = held_[Index(id)];
    if (held.group == kEverywhere) return BringInput(id, group, wanted);
    if (held.group == group && held.tensors.state == wanted) return held.tensors;
    for (const auto& [where, tensors] : held.copies) {
      if (where == group && tensors.state == wanted) return tensors;
    }
    ASSIGN_OR_RETURN(RankTensors made, MakeCopy(id, group, wanted));
    held_[Index(id)].copies.emplace_back(group, made);
    return made;
  }

  absl::StatusOr<RankTensors> BringInput(NodeId id, int32_t group, const SplitState& wanted) {
    RankTensors everywhere;
    everywhere.by_rank.assign(Ranks(group).size(), held_[Index(id)].tensors.by_rank[0]);
    if (wanted.mirrored()) return everywhere;
    return exchanges_[group].Slice(everywhere, wanted, graph_.node(id));
  }

  absl::StatusOr<RankTensors> MakeCopy(NodeId id, int32_t group, const SplitState& wanted) {
    const int32_t home = held_[Index(id)].group;
    if (home != group) return BringAcross(id, home, group, wanted);
    const RankTensors own = held_[Index(id)].tensors;
    const Node& node = graph_.node(id);
    if (!wanted.mirrored()) {
      ASSIGN_OR_RETURN(const RankTensors whole, Bring(id, group, SplitState::Mirrored()));
      return exchanges_[group].Slice(whole, wanted, node);
    }
    if (own.state.partial()) {
      ++result_->reductions;
      return exchanges_[group].Reduce(own, node);
    }
    if (graph_.IsLeaf(graph_.Root(id))) {
      Remark(
          absl::StrCat("'", node.name, "' (", SplitText(own.state), ") is gathered in every step"));
    }
    ++result_->gathers;
    absl::StatusOr<RankTensors> whole = exchanges_[group].Gather(own, node);
    if (whole.ok()) return whole;
    return absl::UnimplementedError(
        absl::StrCat("'", node.name, "' (", SplitText(own.state),
                     ") cannot be gathered: ", whole.status().message()));
  }

  // From group to group: rank r reads from rank r mod n of the other (decision 10).
  absl::StatusOr<RankTensors> BringAcross(NodeId id, int32_t home, int32_t group,
                                          const SplitState& wanted) {
    ASSIGN_OR_RETURN(const RankTensors whole, Bring(id, home, SplitState::Mirrored()));
    RankTensors here;
    for (size_t r = 0; r < Ranks(group).size(); ++r) {
      here.by_rank.push_back(whole.by_rank[r % whole.by_rank.size()]);
    }
    if (wanted.mirrored()) return here;
    return exchanges_[group].Slice(here, wanted, graph_.node(id));
  }

  // How the sources of `id` lie on the group that runs it.
  std::vector<SplitState> StatesOf(NodeId id, int32_t group) const {
    std::vector<SplitState> states;
    for (const NodeId source : graph_.node(id).sources) {
      const Held& held = held_[Index(source)];
      states.push_back(held.group == group ? held.tensors.state : SplitState::Mirrored());
    }
    return states;
  }

  // The rule's answer for the states as they are, else with sums reduced, else with all whole.
  // `states` becomes what was asked with.
  absl::StatusOr<SplitAnswer> Ask(SplitQuestion& question, NodeId id,
                                  std::vector<SplitState>& states) {
    question.states = states;
    absl::StatusOr<SplitAnswer> answer = ApplySplitRule(question);
    if (answer.ok()) return answer;
    for (SplitState& state : states) {
      if (state.partial()) state = SplitState::Mirrored();
    }
    question.states = states;
    answer = ApplySplitRule(question);
    if (answer.ok()) return answer;
    Remark(absl::StrCat(NodeText(graph_, id), " runs whole on every rank: ",
                        answer.status().message(), " (", StatesText(states), ")"));
    const absl::Status reason = answer.status();
    std::fill(states.begin(), states.end(), SplitState::Mirrored());
    question.states = states;
    answer = ApplySplitRule(question);
    if (answer.ok()) return answer;
    return absl::UnimplementedError(
        absl::StrCat(NodeText(graph_, id), " cannot be split: ", reason.message()));
  }

  static std::string StatesText(const std::vector<SplitState>& states) {
    return absl::StrJoin(states, ", ", [](std::string* out, const SplitState& state) {
      out->append(SplitText(state));
    });
  }

  void Remark(std::string text) {
    std::vector<std::string>& all = result_->remarks;
    const bool known = std::find(all.begin(), all.end(), text) != all.end();
    if (!known && all.size() < kMostRemarks) all.push_back(std::move(text));
  }

  absl::Status EmitNode(NodeId id) {
    const int32_t group = GroupOf(id);
    if (group == kEverywhere) return EmitInputView(id);
    const Node& node = graph_.node(id);
    std::vector<TensorLayout> layouts;
    for (const NodeId source : node.sources) layouts.push_back(graph_.layout(source));
    std::vector<SplitState> states = StatesOf(id, group);
    SplitQuestion question{node.op, &node.attributes,
                           layouts, node.layout,
                           {},      static_cast<int32_t>(Ranks(group).size())};
    ASSIGN_OR_RETURN(const SplitAnswer answer, Ask(question, id, states));
    // What outlives the step would keep its old content.
    if (GetOpInfo(node.op).writes_source && graph_.IsLeaf(graph_.Root(id)) &&
        answer.sources[0] != StatesOf(id, group)[0]) {
      return absl::UnimplementedError(absl::StrCat(NodeText(graph_, id),
                                                   " would write into a copy of a tensor that is ",
                                                   SplitText(StatesOf(id, group)[0])));
    }
    std::vector<RankTensors> sources;
    for (size_t i = 0; i < node.sources.size(); ++i) {
      ASSIGN_OR_RETURN(RankTensors tensors, Bring(node.sources[i], group, answer.sources[i]));
      sources.push_back(std::move(tensors));
    }
    const auto mirrored = [](const SplitState& state) { return state.mirrored(); };
    const bool whole = answer.result.mirrored() &&
                       std::all_of(answer.sources.begin(), answer.sources.end(), mirrored);
    if (!whole && graph_.Executes(id)) ++result_->split_nodes;
    RankTensors made;
    made.state = answer.result;
    const bool first_chooses = !unlike_[group].empty() && made.state.mirrored() && Chooses(node.op);
    for (int32_t r = 0; r < (first_chooses ? 1 : question.ranks); ++r) {
      ASSIGN_OR_RETURN(const EmittedId one, EmitOnRank(id, group, r, question, answer, sources));
      made.by_rank.push_back(one);
    }
    if (first_chooses) {
      ASSIGN_OR_RETURN(made, TakeChoice(id, group, made.by_rank[0]));
    }
    held_[Index(id)] = {group, std::move(made), {}};
    return absl::OkStatus();
  }

  // Each rank would choose by values of its own: the first has done it for all.
  absl::StatusOr<RankTensors> TakeChoice(NodeId id, int32_t group, EmittedId first) {
    ++result_->choices;
    const Node& node = graph_.node(id);
    Remark(absl::StrCat(context_.device(group).name(), ": what ", AbslView(OpName(node.op)),
                        " takes is chosen by rank 0 for all, as ", unlike_[group]));
    return exchanges_[group].FromFirst(first, node);
  }

  // A view of what the host fills is wherever that is.
  absl::Status EmitInputView(NodeId id) {
    const Node& node = graph_.node(id);
    const EmittedId source = held_[Index(node.sources[0])].tensors.by_rank[0];
    ASSIGN_OR_RETURN(const EmittedId view,
                     nodes_.Make(node.op, node.attributes, {source}, -1, node));
    held_[Index(id)].tensors.by_rank = {view};
    return absl::OkStatus();
  }

  absl::StatusOr<EmittedId> EmitOnRank(NodeId id, int32_t group, int32_t rank,
                                       const SplitQuestion& question, const SplitAnswer& answer,
                                       const std::vector<RankTensors>& sources) {
    const Node& node = graph_.node(id);
    const int32_t device = Ranks(group)[rank];
    std::vector<EmittedId> local;
    local.reserve(sources.size());
    for (const RankTensors& source : sources) local.push_back(source.by_rank[rank]);
    const bool lacks = std::find(local.begin(), local.end(), kNothing) != local.end();
    if (lacks && answer.result.partial()) {
      // Nothing to add: exactly zero, whatever the others have.
      return nodes_.Make(Op::kFill, FillAttributes{node.layout.ne, 0}, {}, device, node);
    }
    if (lacks) return kNothing;
    if (answer.first_rank_computes && rank > 0) return local[0];
    std::vector<TensorLayout> layouts;
    layouts.reserve(local.size());
    for (const EmittedId source : local) layouts.push_back(nodes_.layout(source));
    absl::StatusOr<EmittedId> made =
        nodes_.Make(node.op, LocalAttributes(question, answer, layouts, rank), local, device, node);
    const Extents want = LocalExtents(answer.result, node.layout.ne, rank);
    const bool candidates = answer.result.kind == SplitKind::kCandidates;
    if (made.ok() && (candidates || nodes_.layout(*made).ne == want)) return made;
    return absl::InternalError(
        absl::StrCat(NodeText(graph_, id), " on rank ", rank, " (", SplitText(answer.result), "): ",
                     made.ok() ? absl::StrCat("gives ", LayoutText(nodes_.layout(*made)))
                               : std::string(made.status().message())));
  }

  absl::Status MarkOutput(NodeId id) {
    const int32_t group = held_[Index(id)].group;
    RankTensors tensors = held_[Index(id)].tensors;
    const SplitState& state = tensors.state;
    if (state.partial() || (state.cut() && !IsPartition(state))) {
      ASSIGN_OR_RETURN(tensors, Bring(id, group, SplitState::Mirrored()));
    }
    outputs_.push_back({tensors, graph_.layout(id).ne});
    const size_t count = tensors.state.mirrored() ? 1 : tensors.by_rank.size();
    for (size_t r = 0; r < count; ++r) {
      const EmittedId part = tensors.by_rank[r];
      if (part == kNothing) continue;
      if (nodes_.is_output(part)) {
        return absl::InternalError(
            absl::StrCat("'", graph_.node(id).name, "' would be an output twice"));
      }
      nodes_.MarkOutput(part);
    }
    return absl::OkStatus();
  }

  void PlaceLeafs(const RankNodes::Finished& finished) {
    RankGraph& result = *result_;
    result.input.leafs.resize(result.graph.nodes().size());
    for (int32_t i = 0; i < result.graph.size(); ++i) {
      const NodeId id{i};
      const int32_t device = finished.devices[i];
      const LeafAttributes* leaf = result.graph.leaf(id);
      if (leaf != nullptr && device >= 0) {
        const bool weight = leaf->kind == LeafKind::kWeight;
        result.input.leafs[i] = {&layout_.devices[device]->buffer_type(),
                                 weight ? BufferUsage::kWeights : BufferUsage::kAny};
      } else if (result.graph.Executes(id)) {
        result.input.pins.push_back({id, device});
      }
    }
  }

  // Positions of outputs count the nodes that are marked, in the order of the graph.
  void PlaceOutputs(const RankNodes::Finished& finished) {
    std::vector<int32_t> position(result_->graph.nodes().size(), -1);
    int32_t count = 0;
    for (int32_t i = 0; i < result_->graph.size(); ++i) {
      if (result_->graph.node(NodeId{i}).output) position[i] = count++;
    }
    for (const auto& [tensors, whole] : outputs_) {
      RankOutput output{tensors.state, whole, {}};
      const size_t parts = tensors.state.mirrored() ? 1 : tensors.by_rank.size();
      for (size_t r = 0; r < parts; ++r) {
        const EmittedId part = tensors.by_rank[r];
        output.parts.push_back(
            part == kNothing ? -1 : position[Index(finished.ids[static_cast<size_t>(part)])]);
      }
      result_->outputs.push_back(std::move(output));
    }
  }

  absl::StatusOr<std::unique_ptr<RankGraph>> Finish() {
    RankNodes::Finished finished = nodes_.Finish();
    result_->graph = std::move(finished.graph);
    PlanInput& input = result_->input;
    input.graph = &result_->graph;
    input.devices = layout_.devices;
    input.batch = context_.input().batch;
    input.options = context_.input().options;
    input.options.observed.clear();
    // Copies of every exchange cross devices: four of each would be more memory than the model.
    if (layout_.exchange == ExchangeKind::kCopies) input.options.pipeline = false;
    PlaceLeafs(finished);
    PlaceOutputs(finished);
    return std::move(result_);
  }

  const PlanContext& context_;
  const Graph& graph_;
  const Plan& plan_;
  const RankLayout& layout_;
  std::unique_ptr<RankGraph> result_ = std::make_unique<RankGraph>();
  RankNodes nodes_;
  CollectiveCounter counter_;
  std::vector<RankExchange> exchanges_;  // by device of the plan
  std::vector<std::string> unlike_;      // likewise: UnlikeRanks of its ranks
  std::vector<Held> held_;               // by node of the whole graph
  std::vector<std::pair<RankTensors, Extents>> outputs_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RankGraph>> ExpandRanks(const PlanContext& context, const Plan& plan,
                                                       const RankLayout& layout) {
  const DType wire = context.input().options.wire;
  if (layout.exchange == ExchangeKind::kCopies && wire != DType::kF32) {
    return absl::InvalidArgumentError(absl::StrCat("sums cannot travel as ",
                                                   AbslView(DTypeName(wire)),
                                                   " where ranks exchange by copies of tensors"));
  }
  return Expander(context, plan, layout).Run();
}

}  // namespace weft
