#include "worker/service/requests.h"

#include <string>
#include <vector>

#include "common/graph/graph_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc_backend/protocol/graph_codec.h"
#include "tests/support/fake_device.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// rope and scale of one input, and the request that asks for both.
struct Question {
  Question() {
    GraphBuilder builder;
    const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {8, 2, 3, 1}, "x");
    const NodeId positions = builder.Leaf(LeafKind::kInput, 1, DType::kI32, {3, 1, 1, 1}, "at");
    rope = builder.Rope(x, positions, kNoNode, {RopeKind::kHalf, 8});
    const NodeId scaled = builder.Scale(rope, 2);
    graph = builder.graph();
    request.set_graph(EncodeGraph(graph));
    request.add_nodes(Index(rope));
    request.add_nodes(Index(scaled));
  }

  NodeId rope = kNoNode;
  Graph graph;
  proto::QuerySupportRequest request;
};

TEST(AnswerSupportTest, Quarantine_OfOneDevice_RefusesThereOnly) {
  FakeDeviceOptions options;
  FakeDevice right(options);
  options.name = "fake1";
  FakeDevice wrong(options);
  Question question;
  WorkerParts parts;
  parts.devices = {&right, &wrong};
  parts.quarantines = {Quarantine("fake0"), Quarantine("fake1")};
  parts.quarantines[1].Add(OpKindOf(question.graph, question.rope), "error 2, limit 1e-05");

  proto::QuerySupportReply reply;
  ASSERT_OK(AnswerSupport(parts, question.request, reply));
  ASSERT_EQ(reply.nodes_size(), 2);
  EXPECT_TRUE(reply.nodes(0).ok());
  EXPECT_TRUE(reply.nodes(1).ok());

  reply.Clear();
  question.request.set_device(1);
  ASSERT_OK(AnswerSupport(parts, question.request, reply));
  ASSERT_EQ(reply.nodes_size(), 2);
  EXPECT_FALSE(reply.nodes(0).ok());
  EXPECT_THAT(reply.nodes(0).reason(),
              HasSubstr("fake1 computed rope F32 wrong in its self-test (error 2, limit 1e-05)"));
  EXPECT_TRUE(reply.nodes(1).ok());
}

TEST(AnswerSupportTest, NoQuarantines_AskTheDeviceOnly) {
  FakeDeviceOptions options;
  options.refused_ops = {Op::kScale};
  FakeDevice device(options);
  Question question;
  WorkerParts parts;
  parts.devices = {&device};
  proto::QuerySupportReply reply;
  ASSERT_OK(AnswerSupport(parts, question.request, reply));
  ASSERT_EQ(reply.nodes_size(), 2);
  EXPECT_TRUE(reply.nodes(0).ok());
  EXPECT_FALSE(reply.nodes(1).ok());
}

}  // namespace
}  // namespace weft
