#include "tests/support/random_graph.h"

#include <cstdio>
#include <vector>

#include "common/base/check.h"
#include "common/graph/graph_builder.h"

namespace weft {
namespace {

class Maker {
 public:
  explicit Maker(Random& random) : random_(random) {}

  Graph Make(int op_count) {
    Add(NewFloats({8, 3, 2, 1}));
    for (int i = 0; i < op_count; ++i) {
      const Step step = kSteps[random_.Between(0, kStepCount - 1)];
      (this->*step)();
    }
    MarkOutputs();
    absl::StatusOr<Graph> graph = std::move(builder_).Finish();
    if (!graph.ok()) std::fprintf(stderr, "%s\n", graph.status().ToString().c_str());
    WEFT_CHECK(graph.ok());
    return *std::move(graph);
  }

 private:
  using Step = void (Maker::*)();
  static constexpr int kStepCount = 21;
  static const Step kSteps[kStepCount];

  void Add(NodeId id) { pool_.push_back(id); }
  int64_t Small() { return random_.Between(1, 5); }
  bool Coin() { return random_.Between(0, 1) == 1; }
  const Extents& ExtentsOf(NodeId id) { return builder_.layout(id).ne; }

  NodeId NewFloats(const Extents& ne) {
    // A quarter are weights.
    const bool weight = random_.Between(0, 3) == 0;
    const int32_t id = weight ? weights_++ : inputs_++;
    return builder_.Leaf(weight ? LeafKind::kWeight : LeafKind::kInput, id, DType::kF32, ne,
                         weight ? "weight" : "input");
  }
  NodeId NewIds(const Extents& ne) {
    return builder_.Leaf(LeafKind::kInput, inputs_++, DType::kI32, ne, "ids");
  }
  // Any tensor so far with contiguous rows and no empty dimension.
  NodeId Any() {
    while (true) {
      const NodeId id = pool_[random_.Between(0, static_cast<int64_t>(pool_.size()) - 1)];
      if (HasContiguousRows(builder_.layout(id))) return id;
    }
  }

  void Binary() {
    const NodeId a = Any();
    Extents ne = ExtentsOf(a);
    for (int64_t& extent : ne) {
      if (Coin()) extent = 1;
    }
    const NodeId b = NewFloats(ne);
    static constexpr Op kOps[] = {Op::kAdd, Op::kSub, Op::kMul};
    Add(builder_.Make(kOps[random_.Between(0, 2)], {}, {a, b}));
  }
  void SameShape() {
    static constexpr UnaryKind kKinds[] = {UnaryKind::kSilu, UnaryKind::kGelu, UnaryKind::kTanh,
                                           UnaryKind::kSin, UnaryKind::kRelu};
    const NodeId x = Any();
    const int64_t choice = random_.Between(0, 6);
    if (choice == 0) return Add(builder_.Scale(x, 0.5f, 0.25f));
    if (choice == 1) return Add(builder_.Clamp(x, -0.75f, 0.5f));
    Add(builder_.Unary(x, kKinds[choice - 2]));
  }
  void Norm() {
    const NodeId x = Any();
    const NodeId weight = Coin() ? NewFloats({ExtentsOf(x)[0], 1, 1, 1}) : kNoNode;
    if (Coin()) return Add(builder_.RmsNorm(x, weight, 1e-5f));
    Add(builder_.Make(Op::kNorm, NormAttributes{}, {x, weight}));
  }
  void Reduce() {
    const NodeId x = Any();
    switch (random_.Between(0, 3)) {
      case 0:
        return Add(builder_.SumRows(x));
      case 1:
        return Add(builder_.SoftMax(x));
      case 2:
        return Add(builder_.Make(Op::kMean, {}, {x}));
      default:
        return Add(builder_.Make(Op::kCumSum, {}, {x}));
    }
  }
  void Choose() {
    const NodeId x = Any();
    const auto k = static_cast<int32_t>(random_.Between(1, ExtentsOf(x)[0]));
    const NodeId ids = Coin() ? builder_.TopK(x, k, kNoNode) : builder_.Make(Op::kArgMax, {}, {x});
    integers_.push_back(ids);
  }
  void Gate() {
    const NodeId x = Any();
    if (ExtentsOf(x)[0] % 2 == 0 && Coin()) {
      return Add(builder_.Make(Op::kGlu, GluAttributes{GluKind::kGeglu, Coin()}, {x}));
    }
    Add(builder_.Swiglu(x, NewFloats(ExtentsOf(x))));
  }
  // What fused ops are made of.
  void Composed() {
    const NodeId x = Any();
    if (Coin())
      return Add(builder_.Mul(builder_.Unary(x, UnaryKind::kSilu), NewFloats(ExtentsOf(x))));
    Add(builder_.Mul(builder_.RmsNorm(x, kNoNode, 1e-5f), NewFloats({ExtentsOf(x)[0], 1, 1, 1})));
  }
  void Product() {
    const NodeId b = Any();
    const bool quantised = ExtentsOf(b)[0] % 32 == 0;
    const DType dtype = quantised ? DType::kQ8_0 : Coin() ? DType::kF16 : DType::kF32;
    const NodeId a = builder_.Leaf(LeafKind::kWeight, weights_++, dtype,
                                   {ExtentsOf(b)[0], Small(), 1, 1}, "matrix");
    Add(builder_.MulMat(a, b));
  }
  void ExpertProduct() {
    const int64_t tokens = Small();
    const bool routed = Coin();  // by computed scores, else by ids that the host gives
    const int64_t used = routed ? random_.Between(1, 2) : Small();
    const NodeId experts =
        builder_.Leaf(LeafKind::kWeight, weights_++, DType::kF32, {6, Small(), 2, 1}, "experts");
    const NodeId x = NewFloats({6, Coin() ? 1 : used, tokens, 1});
    const NodeId ids = routed ? builder_.TopK(builder_.Scale(NewFloats({2, tokens, 1, 1}), 0.5f),
                                              static_cast<int32_t>(used), kNoNode)
                              : NewIds({used, tokens, 1, 1});
    const NodeId y = builder_.MulMatId(experts, x, ids);
    Add(builder_.AddId(y, NewFloats({ExtentsOf(y)[0], 2, 1, 1}), ids));
  }
  void Rows() {
    const NodeId x = Any();
    const Extents ne = ExtentsOf(x);
    if (ne[1] < 2) return;
    Add(builder_.GetRows(x, NewIds({Small(), ne[2], ne[3], 1})));
  }
  void WriteRows() {
    const NodeId x = Any();
    const Extents ne = ExtentsOf(x);
    if (ne[1] < 2) return;
    // The copy is not in the pool: nothing reads it around the write.
    const NodeId target = builder_.Copy(x, DType::kF32);
    const int64_t rows = Small();
    Add(builder_.Make(
        Op::kSetRows, {},
        {target, NewFloats({ne[0], rows, ne[2], ne[3]}), NewIds({rows, ne[2], ne[3], 1})}));
  }
  void Join() {
    const NodeId x = Any();
    const auto axis = static_cast<int32_t>(random_.Between(0, 3));
    Extents ne = ExtentsOf(x);
    ne[axis] = Small();
    if (ne[0] < 256) Add(builder_.Concat(x, NewFloats(ne), axis));
  }
  void Enlarge() {
    const NodeId x = Any();
    if (ElementCount(builder_.layout(x)) > 512) return;
    Extents ne = ExtentsOf(x);
    const auto axis = static_cast<size_t>(random_.Between(0, 3));
    if (Coin()) {
      ne[axis] *= 2;
      return Add(builder_.Repeat(x, ne));
    }
    Extents after = {0, 0, 0, 0};
    after[axis] = Small();
    Add(builder_.Make(Op::kPad, PadAttributes{after}, {x}));
  }
  void Square() {
    const int64_t n = Small();
    const NodeId diagonal = builder_.Make(Op::kDiag, {}, {NewFloats({n, 1, 1, 1})});
    const NodeId filled = builder_.Make(Op::kFill, FillAttributes{{n, n, 1, 1}, 0.5f}, {});
    Add(builder_.Make(Op::kTri, TriangleAttributes{Coin(), Coin()},
                      {builder_.Add(filled, diagonal)}));
  }
  void Window() {
    const NodeId x = Any();
    const TensorLayout layout = builder_.layout(x);
    Extents ne = layout.ne;
    int64_t offset = 0;
    for (int i = 0; i < 4; ++i) {
      const int64_t skip = random_.Between(0, ne[i] - 1);
      ne[i] = random_.Between(1, ne[i] - skip);
      offset += skip * layout.nb[i];
    }
    Add(builder_.View(x, ne, layout.nb, offset));
  }
  void Rearrange() {
    const NodeId x = Any();
    if (!IsContiguous(builder_.layout(x)) || Coin()) {
      return Add(Coin() ? builder_.Permute(x, {0, 2, 1, 3}) : builder_.Permute(x, {0, 3, 1, 2}));
    }
    Add(builder_.Reshape(x, {ElementCount(builder_.layout(x)), 1, 1, 1}));
  }
  void Turn() { Add(builder_.Contiguous(builder_.Transpose(Any()))); }
  void Rotate() {
    const int64_t tokens = Small();
    RopeAttributes rope;
    rope.kind = Coin() ? RopeKind::kAdjacent : RopeKind::kHalf;
    rope.dimensions = 4;
    const NodeId factors = Coin() ? NewFloats({2, 1, 1, 1}) : kNoNode;
    Add(builder_.Rope(NewFloats({6, Small(), tokens, 1}), NewIds({tokens, 1, 1, 1}),
                      factors == kNoNode ? kNoNode : builder_.Scale(factors, 0.25f, 1), rope));
  }
  void Attend() {
    const int64_t tokens = Small();
    const int64_t kv_heads = random_.Between(1, 2);
    const NodeId slots = NewIds({tokens, 1, 1, 1});
    const NodeId keys = Store(kv_heads, tokens, slots);
    const NodeId values = Coin() ? Store(kv_heads, tokens, slots) : kNoNode;
    const NodeId table =
        builder_.Leaf(LeafKind::kPageTable, tables_++, DType::kI32, {2, 2, 1, 1}, "page table");
    PagedAttentionAttributes attention;
    attention.scale = 0.5f;
    attention.value_dimensions = values == kNoNode ? 4 : 0;
    if (Coin()) attention.softcap = 5;
    const int64_t heads = 2 * kv_heads;
    Add(builder_.PagedAttention(NewFloats({8, heads, tokens, 1}), keys, values, table,
                                NewIds({tokens, 1, 1, 1}), NewIds({tokens, 1, 1, 1}),
                                Coin() ? NewFloats({heads, 1, 1, 1}) : kNoNode,
                                Coin() ? NewFloats({heads, 1, 1, 1}) : kNoNode, attention));
  }
  NodeId Store(int64_t kv_heads, int64_t tokens, NodeId slots) {
    const NodeId pages = builder_.Leaf(LeafKind::kCache, caches_++, DType::kF32,
                                       {8, kPageTokens, kv_heads, 2}, "pages");
    return builder_.KvStore(pages, NewFloats({8, kv_heads, tokens, 1}), slots);
  }
  void Convolve() {
    const int64_t channels = Small();
    Add(builder_.Make(Op::kSsmConv, {},
                      {NewFloats({3 + Small(), channels, 2, 1}), NewFloats({4, channels, 1, 1})}));
  }

  void MarkOutputs() {
    for (size_t i = pool_.size() > 8 ? pool_.size() - 8 : 0; i < pool_.size(); ++i) {
      // Leafs are no results; views become packed.
      builder_.MarkOutput(builder_.Name(builder_.Copy(pool_[i], DType::kF32), "output"));
    }
    for (const NodeId id : integers_) builder_.MarkOutput(id);
  }

  Random& random_;
  GraphBuilder builder_;
  std::vector<NodeId> pool_;      // F32
  std::vector<NodeId> integers_;  // results of top_k and argmax
  int32_t inputs_ = 0, weights_ = 0, caches_ = 0, tables_ = 0;
};

const Maker::Step Maker::kSteps[] = {
    &Maker::Binary,  &Maker::SameShape, &Maker::Norm,     &Maker::Reduce,        &Maker::Choose,
    &Maker::Gate,    &Maker::Product,   &Maker::Rows,     &Maker::WriteRows,     &Maker::Join,
    &Maker::Enlarge, &Maker::Square,    &Maker::Window,   &Maker::Rearrange,     &Maker::Turn,
    &Maker::Rotate,  &Maker::Attend,    &Maker::Convolve, &Maker::ExpertProduct, &Maker::Window,
    &Maker::Composed};

}  // namespace

Graph MakeRandomGraph(Random& random, int op_count) { return Maker(random).Make(op_count); }

void FillLeaf(Random& random, const Graph& graph, NodeId id, HostGraph& host) {
  const auto count = static_cast<size_t>(ElementCount(graph.layout(id)));
  if (graph.layout(id).dtype == DType::kI32) {
    std::vector<int32_t> values(count);
    for (int32_t& value : values) value = static_cast<int32_t>(random.Between(0, 1));
    host.SetI32(id, values);
  } else {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(2 * random.Uniform() - 1);
    host.SetF32(id, values);
  }
}

void FillLeafs(Random& random, const Graph& graph, HostGraph& host) {
  for (int32_t i = 0; i < graph.size(); ++i) {
    const LeafAttributes* leaf = graph.leaf(NodeId{i});
    if (leaf == nullptr || leaf->kind == LeafKind::kCache) continue;
    FillLeaf(random, graph, NodeId{i}, host);
  }
}

}  // namespace weft
