#include "rpc_backend/protocol/graph_codec.h"

#include <set>

#include "common/base/random.h"
#include "proto/graph.pb.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/support/wire_samples.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
constexpr auto kBad = absl::StatusCode::kInvalidArgument;

// Refused with a message that has both texts.
void CheckRefused(const proto::Graph& message, const std::string& first,
                  const std::string& second = "") {
  EXPECT_THAT(DecodeGraph(message.SerializeAsString()),
              StatusIs(kBad, AllOf(HasSubstr(first), HasSubstr(second))));
}

proto::Graph SampleMessage() {
  proto::Graph message;
  message.ParseFromString(EncodeGraph(SampleGraph()));
  return message;
}

// The first node of that op.
proto::Node& NodeOf(proto::Graph& message, const std::string& op) {
  for (proto::Node& node : *message.mutable_nodes()) {
    if (message.ops(static_cast<int>(node.op())) == op) return node;
  }
  ADD_FAILURE() << op;
  return *message.mutable_nodes(0);
}

TEST(GraphCodec, Samples_CoverEveryOpAttributeAndFunction) {
  std::set<size_t> alternatives;
  for (const OpAttributes& attributes : SampleAttributes()) alternatives.insert(attributes.index());
  EXPECT_EQ(alternatives.size(), std::variant_size_v<OpAttributes>)
      << "a struct of OpAttributes has no sample in wire_samples.cc";
  std::set<Op> ops;
  const Graph graph = SampleGraph();
  for (const Node& node : graph.nodes()) ops.insert(node.op);
  EXPECT_EQ(ops.size(), AllOps().size());
  // Each member of the oneof is used by some op.
  std::set<int> fields;
  const proto::Graph message = SampleMessage();
  for (const proto::Node& node : message.nodes()) fields.insert(node.attributes_case());
  fields.erase(proto::Node::ATTRIBUTES_NOT_SET);
  EXPECT_EQ(static_cast<int>(fields.size()),
            proto::Node::descriptor()->FindOneofByName("attributes")->field_count());
}

TEST(GraphCodec, EveryOp_ComesBackEqual) {
  const Graph graph = SampleGraph();
  ASSERT_OK_AND_ASSIGN(const Graph decoded, DecodeGraph(EncodeGraph(graph)));
  ASSERT_EQ(decoded.size(), graph.size());
  for (int32_t i = 0; i < graph.size(); ++i) {
    EXPECT_EQ(decoded.node(NodeId{i}), graph.node(NodeId{i})) << NodeText(graph, NodeId{i});
  }
}

TEST(GraphCodec, EveryDataType_ComesBack) {
  for (const DTypeInfo& dtype : AllDTypes()) {
    Graph graph;
    Node leaf;
    leaf.attributes = LeafAttributes{};
    leaf.layout.dtype = dtype.dtype;
    graph.Append(leaf);
    ASSERT_OK_AND_ASSIGN(const Graph decoded, DecodeGraph(EncodeGraph(graph)));
    EXPECT_EQ(decoded, graph);
  }
}

TEST(GraphCodec, RandomGraphs_ComeBackEqualAndLegal) {
  Random random(TestSeed(71));
  for (uint64_t i = 0; i < TestCount(200); ++i) {
    const Graph graph = MakeRandomGraph(random, static_cast<int>(random.Between(1, 40)));
    const std::string bytes = EncodeGraph(graph);
    ASSERT_OK_AND_ASSIGN(const Graph decoded, DecodeGraph(bytes));
    ASSERT_EQ(decoded, graph);
    ASSERT_OK(VerifyGraph(decoded));
    ASSERT_EQ(EncodeGraph(decoded), bytes);
  }
}

TEST(GraphCodec, EmptyGraph_ComesBack) {
  ASSERT_OK_AND_ASSIGN(const Graph decoded, DecodeGraph(EncodeGraph(Graph())));
  EXPECT_EQ(decoded, Graph());
}

TEST(GraphCodec, NamesThatAreNoText_AreEscapedOrCut) {
  Graph graph;
  Node leaf;
  leaf.attributes = LeafAttributes{};
  leaf.name = "two\nlines\xFF";
  graph.Append(leaf);
  leaf.name = std::string(1000, 'x');
  graph.Append(leaf);
  ASSERT_OK_AND_ASSIGN(const Graph decoded, DecodeGraph(EncodeGraph(graph)));
  EXPECT_EQ(decoded.node(NodeId{0}).name, "two\\nlines\\xff");
  EXPECT_EQ(decoded.node(NodeId{1}).name.size(), 256u);
}

TEST(GraphCodec, UnknownOpOrFunction_IsRefusedByName) {
  proto::Graph message = SampleMessage();
  message.set_ops(2, "warp");
  CheckRefused(message, "field 'ops' = 'warp'", "no such op");
  message = SampleMessage();
  NodeOf(message, "unary").mutable_unary()->set_function("selu");
  CheckRefused(message, "(unary 'blk.17", "field 'function' = 'selu'");
  message = SampleMessage();
  NodeOf(message, "glu").mutable_glu()->set_function("");
  CheckRefused(message, "(glu '", "no such function");
  message = SampleMessage();
  NodeOf(message, "rope").set_op(99);
  CheckRefused(message, "(? '", "field 'op' = 99");
}

TEST(GraphCodec, AttributesOfAnotherOp_AreRefusedByName) {
  proto::Graph message = SampleMessage();
  NodeOf(message, "mul_mat").mutable_axis();
  CheckRefused(message, "(mul_mat '", "field 'attributes' = axis: mul_mat has none");
  message = SampleMessage();
  NodeOf(message, "rope").clear_rope();
  CheckRefused(message, "(rope '", "field 'attributes' = none: rope has rope");
}

TEST(GraphCodec, ListsOfWrongLength_AreRefusedByName) {
  proto::Graph message = SampleMessage();
  NodeOf(message, "reshape").mutable_reshape()->mutable_ne()->RemoveLast();
  CheckRefused(message, "(reshape '", "reshape: field 'ne' = (3 values): want 4");
  message = SampleMessage();
  NodeOf(message, "add").mutable_layout()->mutable_nb()->RemoveLast();
  CheckRefused(message, "(add '", "layout: field 'nb'");
  message = SampleMessage();
  NodeOf(message, "permute").mutable_permute()->add_axes(0);
  CheckRefused(message, "PermuteAttributes.axes: more than 4");
  message = SampleMessage();
  NodeOf(message, "rope").mutable_rope()->clear_sections();
  CheckRefused(message, "(rope '", "field 'sections'");
}

TEST(GraphCodec, NumbersOutOfRange_AreRefusedByName) {
  const auto check = [](const std::string& op, void (*change)(proto::Node&),
                        const std::string& why) {
    proto::Graph message = SampleMessage();
    change(NodeOf(message, op));
    CheckRefused(message, "(" + op + " '", why);
  };
  check(
      "leaf", [](proto::Node& node) { node.mutable_leaf()->set_kind(4); }, "'kind' = 4");
  check(
      "leaf", [](proto::Node& node) { node.mutable_leaf()->set_id(-1); }, "'id' = -1");
  check(
      "view", [](proto::Node& node) { node.mutable_view()->set_offset(-4); }, "'offset' = -4");
  check(
      "view", [](proto::Node& node) { node.mutable_view()->set_ne(1, -4); }, "'ne' = -4");
  check(
      "permute", [](proto::Node& node) { node.mutable_permute()->set_axes(0, 4); }, "'axes' = 4");
  check(
      "copy", [](proto::Node& node) { node.mutable_copy()->set_type(4); }, "no such data type");
  check(
      "concat", [](proto::Node& node) { node.mutable_axis()->set_axis(-1); }, "'axis' = -1");
  check(
      "rope", [](proto::Node& node) { node.mutable_rope()->set_kind(4); }, "'kind' = 4");
  check(
      "top_k", [](proto::Node& node) { node.mutable_top_k()->set_k(-1); }, "'k' = -1");
  check(
      "paged_attention",
      [](proto::Node& node) { node.mutable_paged_attention()->set_window_kind(3); },
      "'window_kind' = 3");
  check(
      "mul", [](proto::Node& node) { node.mutable_layout()->set_type(77); }, "'type' = 77");
  check(
      "mul", [](proto::Node& node) { node.mutable_layout()->set_ne(2, int64_t{1} << 62); },
      "too many elements");
  check(
      "mul", [](proto::Node& node) { node.set_sources(0, -1); }, "'sources' = -1");
  check(
      "mul", [](proto::Node& node) { node.set_sources(0, 1 << 20); }, "does not precede");
  check(
      "mul", [](proto::Node& node) { node.set_view_root(1 << 20); }, "'view_root'");
  check(
      "mul", [](proto::Node& node) { node.set_view_offset(-1); }, "'view_offset' = -1");
  check(
      "mul", [](proto::Node& node) { node.set_layer(-1); }, "'layer' = -1");
  check(
      "mul", [](proto::Node& node) { node.set_name("a\nb"); }, "'name' = a\\nb");
  check(
      "mul", [](proto::Node& node) { node.set_name(std::string(257, 'x')); }, "(257 bytes)");
}

TEST(GraphCodec, TooManyNodesOrSources_AreRefusedBeforeParsing) {
  WireLimits limits;
  limits.program.nodes = 10;
  EXPECT_THAT(DecodeGraph(EncodeGraph(SampleGraph()), limits),
              StatusIs(kBad, HasSubstr("Graph.nodes: more than 10 entries")));
  // Two bytes each that would unfold into a node.
  std::string many;
  for (int i = 0; i < 1 << 20; ++i) many += std::string_view("\x12\x00", 2);
  EXPECT_THAT(DecodeGraph(many), StatusIs(kBad, HasSubstr("Graph.nodes: more than")));
  proto::Graph message = SampleMessage();
  for (int i = 0; i < 9; ++i) message.mutable_nodes(0)->add_sources(0);
  CheckRefused(message, "Node.sources: more than 8");
  limits = WireLimits();
  limits.embedded_message_bytes = 100;
  EXPECT_THAT(DecodeGraph(EncodeGraph(SampleGraph()), limits),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("a graph of")));
}

}  // namespace
}  // namespace weft
