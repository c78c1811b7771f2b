#include "common/graph/fusion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace weft {
namespace {

// Source `index` of `node` if it is such an op, else null. Null has no sources.
const Node* Source(const Graph& graph, const Node* node, size_t index, Op op) {
  if (node == nullptr || index >= node->sources.size()) return nullptr;
  const Node& source = graph.node(node->sources[index]);
  return source.op == op ? &source : nullptr;
}

// Fused nodes whose plain form may be what ends in a node, those that replace most first. Only a
// comparison with the plain form tells; see Match.
class Candidates {
 public:
  Candidates(const Graph& graph, NodeId result) : graph_(graph), root_(graph.node(result)) {
    if (root_.op == Op::kMul) {
      AddNorms();
      AddOai();
      AddGlus(0, 1);
      AddGlus(1, 0);
    } else if (root_.op == Op::kAdd) {
      AddScales();
      AddIds();
    } else if (root_.op == Op::kSoftMax) {
      AddSoftMax();
    }
  }
  std::vector<Node> Take() { return std::move(found_); }

 private:
  void Add(Op op, OpAttributes attributes, std::initializer_list<NodeId> sources) {
    Node node;
    node.op = op;
    node.attributes = std::move(attributes);
    node.sources = sources;
    node.layout = root_.layout;
    node.output = root_.output;
    node.layer = root_.layer;
    node.name = root_.name;
    found_.push_back(std::move(node));
  }

  void AddNorms() {
    for (const Op op : {Op::kRmsNorm, Op::kNorm}) {
      const Node* norm = Source(graph_, &root_, 0, op);
      if (norm != nullptr) Add(op, norm->attributes, {norm->sources[0], root_.sources[1]});
    }
  }

  void AddGlu(GluAttributes glu, NodeId gate, NodeId up) {
    const Node& first = graph_.node(gate);
    const Node& second = graph_.node(up);
    if (first.op == Op::kView && second.op == Op::kView && first.sources == second.sources) {
      GluAttributes halves = glu;
      halves.swapped = first.view_offset > second.view_offset;
      Add(Op::kGlu, halves, {first.sources[0]});
    }
    Add(Op::kGlu, glu, {gate, up});
  }

  void AddGlus(size_t gate, size_t up) {
    const Node* unary = Source(graph_, &root_, gate, Op::kUnary);
    if (unary == nullptr) return;
    for (const GluKind kind : {GluKind::kSwiglu, GluKind::kGeglu, GluKind::kReglu}) {
      if (GateFunction(kind) != std::get<UnaryAttributes>(unary->attributes).kind) continue;
      AddGlu({kind}, unary->sources[0], root_.sources[up]);
    }
  }

  void AddOai() {
    const Node* gated = Source(graph_, &root_, 0, Op::kMul);
    const Node* gate = Source(graph_, gated, 0, Op::kClamp);
    const Node* scale = Source(graph_, Source(graph_, gated, 1, Op::kUnary), 0, Op::kScale);
    const Node* up = Source(graph_, Source(graph_, &root_, 1, Op::kAdd), 0, Op::kClamp);
    if (gate == nullptr || scale == nullptr || up == nullptr) return;
    GluAttributes glu{GluKind::kSwigluOai};
    glu.alpha = std::get<ScaleAttributes>(scale->attributes).factor;
    glu.limit = std::get<ClampAttributes>(gate->attributes).high;
    AddGlu(glu, gate->sources[0], up->sources[0]);
  }

  void AddScales() {
    const Node* fill = Source(graph_, &root_, 1, Op::kFill);
    if (fill == nullptr) return;
    const float bias = std::get<FillAttributes>(fill->attributes).value;
    const Node* scale = Source(graph_, &root_, 0, Op::kScale);
    if (scale != nullptr) {
      const float factor = std::get<ScaleAttributes>(scale->attributes).factor;
      Add(Op::kScale, ScaleAttributes{factor, bias}, {scale->sources[0]});
    }
    Add(Op::kScale, ScaleAttributes{1, bias}, {root_.sources[0]});
  }

  void AddSoftMax() {
    const Node* scale = Source(graph_, &root_, 0, Op::kScale);
    if (scale == nullptr) return;
    const float factor = std::get<ScaleAttributes>(scale->attributes).factor;
    Add(Op::kSoftMax, SoftMaxAttributes{factor}, {scale->sources[0]});
  }

  void AddIds() {
    const Node* rows = Source(graph_, Source(graph_, &root_, 1, Op::kReshape), 0, Op::kGetRows);
    const Node* list = Source(graph_, rows, 1, Op::kReshape);
    if (list == nullptr) return;
    const Node* copy = Source(graph_, list, 0, Op::kCopy);
    if (copy != nullptr) {
      Add(Op::kAddId, NoAttributes{}, {root_.sources[0], rows->sources[0], copy->sources[0]});
    }
    Add(Op::kAddId, NoAttributes{}, {root_.sources[0], rows->sources[0], list->sources[0]});
  }

  const Graph& graph_;
  const Node& root_;
  std::vector<Node> found_;
};

// Compares what ends in a node of a graph with the plain form of a fused node.
class Match {
 public:
  // The nodes that make up the plain form of `fused`, descending, `result` first; empty if what
  // ends in `result` is something else.
  static std::vector<NodeId> Find(const Graph& graph, NodeId result, const Node& fused) {
    Match match(graph);
    if (!match.Prepare(fused)) return {};
    const auto sources = static_cast<std::ptrdiff_t>(fused.sources.size());
    if (!match.Unify(NodeId{match.pattern_.size() - 1}, result)) return {};
    std::vector<NodeId> nodes(match.bound_.begin() + sources, match.bound_.end());
    std::sort(nodes.begin(), nodes.end(), std::greater<>());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }

 private:
  explicit Match(const Graph& graph) : graph_(graph) {}

  // Makes the plain form over leafs that are bound to the sources. False if the op table refuses.
  bool Prepare(const Node& fused) {
    absl::InlinedVector<TensorLayout, 4> layouts;
    absl::InlinedVector<NodeId, 4> leafs;
    for (const NodeId source : fused.sources) {
      Node leaf;
      leaf.layout = graph_.layout(source);
      layouts.push_back(leaf.layout);
      leafs.push_back(pattern_.Append(std::move(leaf)));
    }
    if (!InferResult(fused.op, fused.attributes, layouts).ok() || !HasPlainForm(fused))
      return false;
    GraphBuilder builder(std::move(pattern_));
    ComposePlainForm(fused, leafs, builder);
    absl::StatusOr<Graph> pattern = std::move(builder).Finish();
    if (!pattern.ok()) return false;
    pattern_ = *std::move(pattern);
    bound_.assign(fused.sources.begin(), fused.sources.end());
    bound_.resize(static_cast<size_t>(pattern_.size()), kNoNode);
    return true;
  }

  // True if node `at` of the graph computes what node `part` of the pattern does.
  bool Unify(NodeId part, NodeId at) {
    const NodeId bound = bound_[static_cast<size_t>(Index(part))];
    if (bound != kNoNode) return bound == at;
    const Node& want = pattern_.node(part);
    const Node& have = graph_.node(at);
    // The same ops on the same sources have the same layouts.
    if (want.op != have.op || want.attributes != have.attributes ||
        want.sources.size() != have.sources.size()) {
      return false;
    }
    bound_[static_cast<size_t>(Index(part))] = at;
    const std::vector<NodeId> before = bound_;
    if (UnifySources(want, have, false)) return true;
    bound_ = before;
    return have.op == Op::kMul && UnifySources(want, have, true);
  }

  bool UnifySources(const Node& want, const Node& have, bool swapped) {
    for (size_t i = 0; i < want.sources.size(); ++i) {
      if (!Unify(want.sources[i], have.sources[swapped ? 1 - i : i])) return false;
    }
    return true;
  }

  const Graph& graph_;
  Graph pattern_;
  std::vector<NodeId> bound_;  // per node of the pattern
};

}  // namespace

class FusionFinder::Impl {
 public:
  Impl(const Graph& graph, absl::Span<const NodeId> keep)
      : graph_(graph),
        readers_(graph.nodes().size(), 0),
        kept_(graph.nodes().size(), false),
        free_(graph.nodes().size(), false) {
    for (int32_t i = 0; i < graph.size(); ++i) {
      const Node& node = graph.node(NodeId{i});
      for (const NodeId source : node.sources) ++readers_[At(source)];
      kept_[At(NodeId{i})] = node.output;
      if (GetOpInfo(node.op).writes_source) writers_[node.view_root].push_back(NodeId{i});
    }
    for (const NodeId id : keep) kept_[At(id)] = true;
  }

  std::vector<Fusion> Find(absl::Span<const NodeId> nodes,
                           const std::function<bool(const Node&)>& supports) {
    for (const NodeId id : nodes) free_[At(id)] = true;
    std::vector<Fusion> fusions;
    for (size_t i = nodes.size(); i > 0; --i) {
      std::optional<Fusion> fusion = EndingIn(nodes[i - 1], supports);
      if (fusion) fusions.push_back(*std::move(fusion));
    }
    for (const NodeId id : nodes) free_[At(id)] = false;
    std::reverse(fusions.begin(), fusions.end());
    return fusions;
  }

 private:
  std::optional<Fusion> EndingIn(NodeId result, const std::function<bool(const Node&)>& supports) {
    if (!free_[At(result)]) return std::nullopt;
    for (Node& fused : Candidates(graph_, result).Take()) {
      std::vector<NodeId> replaced = Replaced(fused, Match::Find(graph_, result, fused));
      if (replaced.empty() || !supports(fused)) continue;
      for (const NodeId id : replaced) free_[At(id)] = false;
      return Fusion{std::move(fused), result, std::move(replaced)};
    }
    return std::nullopt;
  }

  static size_t At(NodeId id) { return static_cast<size_t>(Index(id)); }

  // Those of `parts` (descending) that nothing needs once `fused` is there, ascending; empty if the
  // others block it.
  std::vector<NodeId> Replaced(const Node& fused, const std::vector<NodeId>& parts) const {
    std::vector<NodeId> replaced;
    for (const NodeId part : parts) {
      const bool result = replaced.empty();
      if (result || IsInner(part, fused, replaced)) {
        replaced.push_back(part);
      } else if (graph_.Executes(part)) {
        return {};
      }
    }
    std::reverse(replaced.begin(), replaced.end());
    if (!replaced.empty() && SourcesChange(fused, replaced.front(), replaced.back())) return {};
    return replaced;
  }

  // True if only nodes of `replaced` need `part`.
  bool IsInner(NodeId part, const Node& fused, const std::vector<NodeId>& replaced) const {
    if (!free_[At(part)] || kept_[At(part)]) return false;
    if (std::count(fused.sources.begin(), fused.sources.end(), part) != 0) return false;
    int64_t readers = 0;
    for (const NodeId reader : replaced) {
      const auto& sources = graph_.node(reader).sources;
      readers += std::count(sources.begin(), sources.end(), part);
    }
    return readers == readers_[At(part)];
  }

  // True if the memory of a source is written between these two: `fused` would read too late.
  bool SourcesChange(const Node& fused, NodeId first, NodeId last) const {
    for (const NodeId source : fused.sources) {
      const auto written = writers_.find(graph_.Root(source));
      if (written == writers_.end()) continue;
      const std::vector<NodeId>& ids = written->second;
      const auto next = std::upper_bound(ids.begin(), ids.end(), first);
      if (next != ids.end() && *next < last) return true;
    }
    return false;
  }

  const Graph& graph_;
  std::vector<int64_t> readers_;  // how many sources of nodes each node is
  std::vector<bool> kept_;
  std::vector<bool> free_;                         // in the part and in no fusion yet
  std::map<NodeId, std::vector<NodeId>> writers_;  // per root, ascending
};

FusionFinder::FusionFinder(const Graph& graph, absl::Span<const NodeId> keep)
    : impl_(std::make_unique<Impl>(graph, keep)) {}
FusionFinder::~FusionFinder() = default;

std::vector<Fusion> FusionFinder::Find(absl::Span<const NodeId> nodes,
                                       const std::function<bool(const Node& fused)>& supports) {
  return impl_->Find(nodes, supports);
}

std::vector<Fusion> FindFusions(const Graph& graph, absl::Span<const NodeId> nodes,
                                const std::function<bool(const Node& fused)>& supports,
                                absl::Span<const NodeId> keep) {
  return FusionFinder(graph, keep).Find(nodes, supports);
}

}  // namespace weft
