#include "tests/unit/common/graph/graph_mutator.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

int64_t HostileInteger(Random& random) {
  static constexpr int64_t kValues[] = {-1,
                                        0,
                                        1,
                                        2,
                                        3,
                                        4,
                                        16,
                                        4096,
                                        int64_t{1} << 31,
                                        int64_t{1} << 40,
                                        int64_t{1} << 62,
                                        std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int64_t>::min()};
  return kValues[random.Between(0, 12)];
}

float HostileFloat(Random& random) {
  static const float kValues[] = {NAN, INFINITY, -INFINITY, 0, -1, 1e30f, 1e-30f, 0.5f};
  return kValues[random.Between(0, 7)];
}

class AttributeMutator {
 public:
  explicit AttributeMutator(Random& random) : random_(random) {}

  void operator()(NoAttributes&) {}
  void operator()(LeafAttributes& a) { Coin() ? Integer(a.id) : Enumerator(a.kind); }
  void operator()(ViewAttributes& a) {
    Coin() ? Integer(a.offset) : Coin() ? One(a.ne) : One(a.nb);
  }
  void operator()(ReshapeAttributes& a) { One(a.ne); }
  void operator()(PermuteAttributes& a) { One(a.axes); }
  void operator()(CopyAttributes& a) { Enumerator(a.dtype); }
  void operator()(RepeatAttributes& a) { One(a.ne); }
  void operator()(AxisAttributes& a) { Integer(a.axis); }
  void operator()(PadAttributes& a) { One(a.after); }
  void operator()(FillAttributes& a) { Coin() ? One(a.ne) : Float(a.value); }
  void operator()(ScaleAttributes& a) { Float(Coin() ? a.factor : a.bias); }
  void operator()(ClampAttributes& a) { Float(Coin() ? a.low : a.high); }
  void operator()(UnaryAttributes& a) { Enumerator(a.kind); }
  void operator()(GluAttributes& a) {
    a.swapped = Coin();
    Coin() ? Enumerator(a.kind) : Float(Coin() ? a.alpha : a.limit);
  }
  void operator()(NormAttributes& a) { Float(a.epsilon); }
  void operator()(SoftMaxAttributes& a) { Float(a.scale); }
  void operator()(TopKAttributes& a) { Integer(a.k); }
  void operator()(SampleCandidatesAttributes& a) { Integer(Coin() ? a.k : a.first_id); }
  void operator()(RopeAttributes& a) {
    float* const floats[] = {&a.base,          &a.frequency_scale,
                             &a.extrapolation, &a.attention_factor,
                             &a.beta_fast,     &a.beta_slow};
    switch (random_.Between(0, 4)) {
      case 0:
        return Enumerator(a.kind);
      case 1:
        return Integer(a.dimensions);
      case 2:
        return One(a.sections);
      case 3:
        return Integer(a.original_context);
      default:
        return Float(*floats[random_.Between(0, 5)]);
    }
  }
  void operator()(PagedAttentionAttributes& a) {
    switch (random_.Between(0, 6)) {
      case 6:
        return Integer(Coin() ? a.heads_per_kv : a.head_offset);
      case 0:
        return Enumerator(a.window_kind);
      case 1:
        return Integer(a.window);
      case 2:
        return Integer(a.value_dimensions);
      case 3:
        a.has_sinks = !a.has_sinks;
        return;
      case 4:
        a.has_slopes = !a.has_slopes;
        return;
      default:
        return Float(Coin() ? a.scale : a.softcap);
    }
  }
  void operator()(GetRowsAttributes& a) {
    a.partial_table = Coin();
    Integer(a.first_row);
  }
  void operator()(TriangleAttributes& a) { a.lower = !a.lower; }
  void operator()(ReceiveAttributes& a) { Coin() ? Enumerator(a.dtype) : One(a.ne); }
  void operator()(AllReduceAttributes& a) { Coin() ? Key(a.key) : Enumerator(a.wire); }
  void operator()(AllGatherAttributes& a) {
    switch (random_.Between(0, 4)) {
      case 0:
        return Key(a.key);
      case 1:
        return Enumerator(Coin() ? a.wire : a.dtype);
      case 2:
        return Integer(a.axis);
      case 3:
        return One(a.ne);
      default:
        a.counts.push_back(HostileInteger(random_));
    }
  }

 private:
  bool Coin() { return random_.Between(0, 1) == 1; }
  template <typename T>
  void Integer(T& value) {
    value = static_cast<T>(HostileInteger(random_));
  }
  void Float(float& value) { value = HostileFloat(random_); }
  template <typename T>
  void Enumerator(T& value) {
    value = static_cast<T>(Coin() ? random_.Between(0, 255) : random_.Between(0, 6));
  }
  void Key(CollectiveKey& key) { Integer(Coin() ? key.id : key.communicator); }
  template <typename T>
  void One(std::array<T, 4>& values) {
    Integer(values[random_.Between(0, 3)]);
  }

  Random& random_;
};

void MutateLayout(Random& random, TensorLayout& layout) {
  const auto dimension = static_cast<size_t>(random.Between(0, 3));
  switch (random.Between(0, 2)) {
    case 0:
      layout.ne[dimension] = HostileInteger(random);
      break;
    case 1:
      layout.nb[dimension] = HostileInteger(random);
      break;
    default:
      layout.dtype = static_cast<DType>(random.Between(0, 255));
  }
}

}  // namespace

std::string MutateGraph(Random& random, Graph& graph) {
  const NodeId id{static_cast<int32_t>(random.Between(0, graph.size() - 1))};
  Node& node = graph.mutable_node(id);
  const std::string where = NodeText(graph, id);
  switch (random.Between(0, 6)) {
    case 0:
      node.op = static_cast<Op>(random.Between(0, 47));
      return absl::StrCat(where, ": op");
    case 1:
    case 2:
      std::visit(AttributeMutator(random), node.attributes);
      return absl::StrCat(where, ": attributes");
    case 3:
      if (node.sources.empty()) node.sources.push_back(kNoNode);
      node.sources[random.Between(0, static_cast<int64_t>(node.sources.size()) - 1)] =
          NodeId{static_cast<int32_t>(random.Between(-1, graph.size()))};
      return absl::StrCat(where, ": source");
    case 4:
      MutateLayout(random, node.layout);
      return absl::StrCat(where, ": layout");
    case 5:
      node.view_root = NodeId{static_cast<int32_t>(random.Between(-2, graph.size()))};
      return absl::StrCat(where, ": root");
    default:
      node.view_offset = HostileInteger(random);
      return absl::StrCat(where, ": offset");
  }
}

}  // namespace weft
