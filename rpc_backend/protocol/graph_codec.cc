#include "rpc_backend/protocol/graph_codec.h"

#include <array>
#include <vector>

#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "rpc_backend/protocol/clean_text.h"
#include "rpc_backend/protocol/embedded_message.h"
#include "rpc_backend/protocol/field_error.h"
#include "rpc_backend/protocol/graph_message.h"
#include "rpc_backend/protocol/layout_codec.h"

namespace weft {
namespace {

// Names are for people and short on the wire.
constexpr int64_t kNameBytes = WireLimits{}.program.name_bytes;

void EncodeNode(const Node& node, uint32_t op, proto::Node& message) {
  message.set_op(op);
  for (const NodeId source : node.sources) message.add_sources(Index(source));
  EncodeLayout(node.layout, *message.mutable_layout());
  message.set_view_root(Index(node.view_root) + 1);
  message.set_view_offset(node.view_offset);
  message.set_output(node.output);
  message.set_layer(node.layer + 1);
  message.set_name(CleanText(node.name, kNameBytes));
  EncodeAttributes(node.attributes, message);
}

// The ops that a graph names.
absl::StatusOr<std::vector<Op>> DecodeOps(const proto::Graph& message) {
  if (message.ops_size() > kOpCount) {
    return BadField("ops", absl::StrCat("(", message.ops_size(), " names)"),
                    absl::StrCat("there are ", kOpCount, " ops"));
  }
  std::vector<Op> ops;
  for (const std::string& name : message.ops()) {
    const size_t before = ops.size();
    for (const OpInfo& info : AllOps()) {
      if (info.name == name) ops.push_back(info.op);
    }
    if (ops.size() == before) {
      return BadField("ops", absl::StrCat("'", CleanText(name, 32), "'"), "no such op");
    }
  }
  return ops;
}

class NodeDecoder {
 public:
  NodeDecoder(std::vector<Op> ops, const WireLimits& limits)
      : ops_(std::move(ops)), limits_(limits) {}

  // `position` is the node's own.
  absl::StatusOr<Node> Decode(const proto::Node& message, int32_t position) const {
    Node node;
    if (message.op() >= ops_.size()) {
      return BadField("op", message.op(), absl::StrCat("the graph names ", ops_.size(), " ops"));
    }
    node.op = ops_[message.op()];
    if (message.sources_size() > kMaxSources) {
      return BadField("sources", absl::StrCat("(", message.sources_size(), " nodes)"),
                      absl::StrCat("at most ", kMaxSources, " are allowed"));
    }
    for (const int32_t source : message.sources()) {
      if (source < 0 || source >= position) {
        return BadField("sources", source, "does not precede it");
      }
      node.sources.push_back(NodeId{source});
    }
    absl::StatusOr<TensorLayout> layout = DecodeLayout(message.layout());
    if (!layout.ok()) return InPlace("layout", layout.status());
    node.layout = *layout;
    RETURN_IF_ERROR(CheckField("view_root", message.view_root(), 0, position));
    node.view_root = NodeId{message.view_root() - 1};
    node.view_offset = message.view_offset();
    RETURN_IF_ERROR(CheckNotNegative("view_offset", node.view_offset));
    node.output = message.output();
    RETURN_IF_ERROR(CheckNotNegative("layer", message.layer()));
    node.layer = message.layer() - 1;
    if (static_cast<int64_t>(message.name().size()) > limits_.program.name_bytes) {
      return BadField("name", absl::StrCat("(", message.name().size(), " bytes)"),
                      absl::StrCat("at most ", limits_.program.name_bytes, " are allowed"));
    }
    if (!IsCleanText(message.name())) {
      return BadField("name", CleanText(message.name(), 64), "not a line of clean text");
    }
    node.name = message.name();
    ASSIGN_OR_RETURN(node.attributes, DecodeAttributes(node.op, message));
    return node;
  }

  // For errors: what is known of a node that was refused.
  std::string Place(const proto::Node& message, int32_t position) const {
    const bool known = message.op() < ops_.size();
    return absl::StrCat("node ", position, " (",
                        known ? AbslView(OpName(ops_[message.op()])) : absl::string_view("?"), " '",
                        CleanText(message.name(), 64), "')");
  }

 private:
  std::vector<Op> ops_;
  const WireLimits& limits_;
};

}  // namespace

void EncodeGraphMessage(const Graph& graph, proto::Graph& message) {
  std::array<int32_t, kOpCount> number = {};  // 1 + position in message.ops; 0: not named yet
  for (const Node& node : graph.nodes()) {
    int32_t& op = number[static_cast<size_t>(node.op)];
    if (op == 0) {
      message.add_ops(std::string(OpName(node.op)));
      op = message.ops_size();
    }
    EncodeNode(node, static_cast<uint32_t>(op - 1), *message.add_nodes());
  }
}

absl::StatusOr<Graph> DecodeGraphMessage(const proto::Graph& message, const WireLimits& limits) {
  if (message.nodes_size() > limits.program.nodes) {
    return BadField("nodes", absl::StrCat("(", message.nodes_size(), " nodes)"),
                    absl::StrCat("at most ", limits.program.nodes, " are allowed"));
  }
  ASSIGN_OR_RETURN(std::vector<Op> ops, DecodeOps(message));
  const NodeDecoder decoder(std::move(ops), limits);
  Graph graph;
  for (int32_t i = 0; i < message.nodes_size(); ++i) {
    absl::StatusOr<Node> node = decoder.Decode(message.nodes(i), i);
    if (!node.ok()) return InPlace(decoder.Place(message.nodes(i), i), node.status());
    graph.Append(*std::move(node));
  }
  return graph;
}

std::string EncodeGraph(const Graph& graph) {
  google::protobuf::Arena arena;
  auto* message = google::protobuf::Arena::CreateMessage<proto::Graph>(&arena);
  EncodeGraphMessage(graph, *message);
  return message->SerializeAsString();
}

absl::StatusOr<Graph> DecodeGraph(std::string_view bytes, const WireLimits& limits) {
  google::protobuf::Arena arena;
  auto* message = google::protobuf::Arena::CreateMessage<proto::Graph>(&arena);
  RETURN_IF_ERROR(ParseEmbedded("graph", bytes, limits, *message));
  return DecodeGraphMessage(*message, limits);
}

}  // namespace weft
