#include "rpc_backend/client/remote_device.h"

#include <string>
#include <thread>
#include <vector>

#include "common/device/null_device.h"
#include "common/graph/graph_builder.h"
#include "rpc_backend/client/remote_worker.h"
#include "rpc_backend/client/support_cache.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/rpc_backend/client/fake_worker.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kGpu = 0;
constexpr int kAccel = 1;
constexpr int kCpu = 2;

// Layers that are alike: a weight, a product and an addition each.
Graph LayeredGraph(int layers, int64_t tokens) {
  GraphBuilder builder;
  NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {32, tokens, 1, 1}, "x");
  for (int i = 0; i < layers; ++i) {
    const NodeId weight = builder.Leaf(LeafKind::kWeight, i, DType::kF32, {32, 32, 1, 1}, "w");
    x = builder.Add(builder.MulMat(weight, x), x);
  }
  return *std::move(builder).Finish();
}

NodeId Last(const Graph& graph) { return NodeId{graph.size() - 1}; }

class RemoteDeviceTest : public ::testing::Test {
 protected:
  RemoteDevice& Connect(int position) {
    if (worker_ == nullptr) {
      auto worker = RemoteWorker::Connect(options_, nullptr);
      EXPECT_OK(worker);
      worker_ = *std::move(worker);
    }
    return *worker_->remote_devices()[position];
  }

  FakeWorker fake_;
  RemoteWorkerOptions options_ = TestWorkerOptions(fake_.address());
  std::unique_ptr<RemoteWorker> worker_;
};

TEST_F(RemoteDeviceTest, Supports_LayersAlike_OneQuestion) {
  RemoteDevice& device = Connect(kGpu);
  const Graph graph = LayeredGraph(20, 4);
  for (int32_t i = 0; i < graph.size(); ++i) {
    EXPECT_OK(device.Supports(graph, NodeId{i}));
    EXPECT_EQ(device.Wants(graph, NodeId{i}), graph.Executes(NodeId{i}));
  }
  EXPECT_EQ(fake_.calls("QuerySupport"), 1);
  EXPECT_EQ(device.queries(), 1);
  // The workspace of the first of its kind.
  EXPECT_EQ(device.WorkspaceBytes(graph, Last(graph)), 1003);
  EXPECT_OK(device.Supports(LayeredGraph(3, 4), NodeId{5}));
  EXPECT_EQ(fake_.calls("QuerySupport"), 1);
  // Other shapes are other kinds; other devices have their own answers.
  EXPECT_OK(device.Supports(LayeredGraph(3, 5), NodeId{5}));
  EXPECT_EQ(fake_.calls("QuerySupport"), 2);
  EXPECT_OK(Connect(kCpu).Supports(graph, Last(graph)));
  EXPECT_FALSE(Connect(kCpu).Wants(graph, Last(graph)));
  EXPECT_EQ(fake_.calls("QuerySupport"), 3);
}

TEST_F(RemoteDeviceTest, Supports_Refused_ReasonNamesDevice) {
  fake_.edit_support = [](proto::QuerySupportReply& reply) {
    reply.mutable_nodes(1)->set_ok(false);
    reply.mutable_nodes(1)->set_reason("no additions on Sundays");
  };
  const RemoteDevice& device = Connect(kGpu);
  const Graph graph = LayeredGraph(1, 4);
  EXPECT_OK(device.Supports(graph, NodeId{2}));
  EXPECT_THAT(device.Supports(graph, NodeId{3}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("w0.gpu0"), HasSubstr("no additions on Sundays"))));
}

TEST_F(RemoteDeviceTest, Supports_FromManyThreads_OneQuestion) {
  const RemoteDevice& device = Connect(kGpu);
  const Graph graph = LayeredGraph(3, 4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_OK(device.Supports(graph, Last(graph))); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake_.calls("QuerySupport"), 1);
}

TEST_F(RemoteDeviceTest, Supports_QuestionFails_NeverYes) {
  const std::vector<std::pair<grpc::StatusCode, absl::StatusCode>> codes = {
      {grpc::StatusCode::UNAVAILABLE, absl::StatusCode::kUnavailable},
      {grpc::StatusCode::INTERNAL, absl::StatusCode::kInternal}};
  for (const auto& [sent, expected] : codes) {
    FakeWorker fake;
    fake.fail["QuerySupport"] = grpc::Status(sent, "not today");
    ASSERT_OK_AND_ASSIGN(const auto worker,
                         RemoteWorker::Connect(TestWorkerOptions(fake.address()), nullptr));
    const RemoteDevice& device = *worker->remote_devices()[kGpu];
    const Graph graph = LayeredGraph(5, 4);
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (!graph.Executes(NodeId{i})) continue;
      EXPECT_THAT(device.Supports(graph, NodeId{i}),
                  StatusIs(expected, AllOf(HasSubstr("worker w0 ("), HasSubstr("not today"))));
      EXPECT_FALSE(device.Wants(graph, NodeId{i}));
    }
    // Not once per node.
    EXPECT_LE(fake.calls("QuerySupport"), 2);
  }
}

TEST_F(RemoteDeviceTest, Supports_LostWorker_ItsLoss) {
  const RemoteDevice& device = Connect(kGpu);
  worker_->Close();
  const Graph graph = LayeredGraph(1, 4);
  EXPECT_THAT(device.Supports(graph, Last(graph)),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("closed")));
}

TEST_F(RemoteDeviceTest, Supports_ReplyMakesNoSense_NeverYes) {
  const std::vector<std::function<void(proto::QuerySupportReply&)>> edits = {
      [](auto& reply) { reply.mutable_nodes()->RemoveLast(); },
      [](auto& reply) { reply.add_nodes()->set_ok(true); },
      [](auto& reply) { reply.clear_nodes(); },
      [](auto& reply) { reply.mutable_nodes(0)->set_workspace_bytes(-1); },
      [](auto& reply) { reply.mutable_nodes(0)->set_reason(std::string(1000000, 'r')); },
  };
  for (const auto& edit : edits) {
    FakeWorker fake;
    fake.edit_support = edit;
    ASSERT_OK_AND_ASSIGN(const auto worker,
                         RemoteWorker::Connect(TestWorkerOptions(fake.address()), nullptr));
    const Graph graph = LayeredGraph(1, 4);
    EXPECT_THAT(worker->devices()[kGpu]->Supports(graph, Last(graph)),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("makes no sense")));
  }
}

TEST_F(RemoteDeviceTest, SupportsBufferType_InventoryDecides) {
  RemoteDevice& gpu = Connect(kGpu);
  RemoteDevice& accel = Connect(kAccel);
  RemoteDevice& cpu = Connect(kCpu);
  // The accelerator computes in the processor's memory: one type.
  EXPECT_EQ(&accel.buffer_type(), &cpu.buffer_type());
  EXPECT_EQ(&accel.buffer_type().device(), &cpu);
  EXPECT_NE(&gpu.buffer_type(), &cpu.buffer_type());
  EXPECT_OK(accel.Supports(cpu.buffer_type()));
  EXPECT_OK(cpu.Supports(cpu.buffer_type()));
  EXPECT_OK(gpu.Supports(gpu.buffer_type()));
  EXPECT_THAT(gpu.Supports(cpu.buffer_type()),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("w0.gpu0 cannot read")));
  EXPECT_FALSE(cpu.Supports(gpu.buffer_type()).ok());
  // Positions of another worker, and memory of this process.
  FakeWorker other;
  ASSERT_OK_AND_ASSIGN(const auto second,
                       RemoteWorker::Connect(TestWorkerOptions(other.address(), "w1"), nullptr));
  EXPECT_FALSE(cpu.Supports(second->devices()[kCpu]->buffer_type()).ok());
  NullDevice null({});
  EXPECT_FALSE(cpu.Supports(null.buffer_type()).ok());
}

TEST_F(RemoteDeviceTest, TensorBytes_PaddingDevice_AskedOnce) {
  RemoteDevice& gpu = Connect(kGpu);
  ASSERT_OK_AND_ASSIGN(const TensorLayout layout, PackedLayout(DType::kF32, {8, 3, 1, 1}));
  ASSERT_OK_AND_ASSIGN(const TensorLayout empty, PackedLayout(DType::kF32, {8, 0, 1, 1}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(gpu.buffer_type().TensorBytes(layout), 8 * 3 * 8 + 512);
    EXPECT_EQ(gpu.buffer_type().TensorBytes(empty), 512);
  }
  EXPECT_EQ(fake_.calls("QueryTensorBytes"), 2);
  EXPECT_EQ(Connect(kCpu).buffer_type().TensorBytes(layout), 96);
  EXPECT_EQ(Connect(kCpu).buffer_type().TensorBytes(empty), 0);
  EXPECT_EQ(fake_.calls("QueryTensorBytes"), 2);
}

TEST_F(RemoteDeviceTest, TensorBytes_ReplyMakesNoSense_Extent) {
  fake_.edit_tensor_bytes = [](proto::QueryTensorBytesReply& reply) { reply.set_bytes(0, 5); };
  ASSERT_OK_AND_ASSIGN(const TensorLayout layout, PackedLayout(DType::kF32, {8, 3, 1, 1}));
  EXPECT_EQ(Connect(kGpu).buffer_type().TensorBytes(layout), 96);
}

TEST_F(RemoteDeviceTest, OpenBackend_Unimplemented) {
  RemoteDevice& device = Connect(kCpu);
  EXPECT_THAT(device.OpenBackend({}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("as programs")));
  int data = 0;
  EXPECT_THAT(device.WrapHostMemory(&data, 4, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("w0.cpu0")));
}

TEST(SupportCacheTest, Signature_WhatMatters_AndNothingElse) {
  const Graph graph = LayeredGraph(2, 4);
  // The first layer reads an input, the second an addition.
  EXPECT_EQ(SupportCache::Signature(graph, NodeId{2}), SupportCache::Signature(graph, NodeId{5}));
  Graph other = graph;
  other.mutable_node(NodeId{2}).name = "called otherwise";
  other.mutable_node(NodeId{2}).layer = 3;
  other.mutable_node(NodeId{2}).output = true;
  EXPECT_EQ(SupportCache::Signature(graph, NodeId{2}), SupportCache::Signature(other, NodeId{2}));
  const Graph wider = LayeredGraph(1, 5);
  EXPECT_NE(SupportCache::Signature(graph, NodeId{2}), SupportCache::Signature(wider, NodeId{2}));
  EXPECT_NE(SupportCache::Signature(graph, NodeId{2}), SupportCache::Signature(graph, NodeId{3}));
}

}  // namespace
}  // namespace weft
