// The registry, the null device and the check of slices.
#include "common/device/device.h"

#include "common/device/device_registry.h"
#include "common/device/null_device.h"
#include "common/device/slice_check.h"
#include "common/graph/graph_builder.h"
#include "gtest/gtest.h"
#include "tests/support/fake_device.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<NullDevice> Null(std::string name) {
  NullDeviceOptions options;
  options.name = std::move(name);
  options.memory_bytes = 1000;
  options.max_buffer_bytes = 600;
  return std::make_unique<NullDevice>(std::move(options));
}

TEST(DeviceKindName, AllKinds_AreNamed) {
  EXPECT_EQ(DeviceKindName(DeviceKind::kCpu), "cpu");
  EXPECT_EQ(DeviceKindName(DeviceKind::kGpu), "gpu");
  EXPECT_EQ(DeviceKindName(DeviceKind::kAccelerator), "accel");
  EXPECT_EQ(DeviceKindName(DeviceKind::kMeta), "meta");
}

TEST(DeviceRegistry, KeepsOrder_RefusesDoubles_FindsByName) {
  DeviceRegistry registry;
  ASSERT_OK(registry.Add(Null("b")));
  ASSERT_OK(registry.Add(Null("a")));
  EXPECT_THAT(registry.Add(Null("b")),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("called b")));
  EXPECT_THAT(registry.Add(Null("")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no name")));
  ASSERT_EQ(registry.devices().size(), 2u);
  EXPECT_EQ(registry.devices()[0]->name(), "b");
  EXPECT_EQ(*registry.Find("a"), registry.devices()[1]);
  EXPECT_THAT(registry.Find("c"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no device c; there are: b, a")));
}

// What commands perform is computed by no device; leafs and views are nobody's to refuse.
TEST(Supports, Receive_IsRefusedByEveryDevice) {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 1, 1}, "x");
  const NodeId turned = builder.Transpose(x);
  const NodeId received =
      builder.Make(Op::kReceive, ReceiveAttributes{DType::kF32, {4, 1, 1, 1}}, {});
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Finish());
  const auto null = Null("n");
  const FakeDevice fake(FakeDeviceOptions{});
  for (const Device* device :
       {static_cast<const Device*>(null.get()), static_cast<const Device*>(&fake)}) {
    EXPECT_THAT(device->Supports(graph, received),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("receive")));
    EXPECT_OK(device->Supports(graph, x));
    EXPECT_OK(device->Supports(graph, turned));
  }
}

TEST(NullDevice, Memory_IsCountedAndNeverOverlaps) {
  const auto device = Null("n");
  BufferType& type = device->buffer_type();
  ASSERT_OK_AND_ASSIGN(const auto first, type.Allocate(600, BufferUsage::kAny));
  EXPECT_EQ(device->memory().free_bytes, 400);
  EXPECT_THAT(type.Allocate(401, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("400 are free")));
  EXPECT_THAT(type.Allocate(601, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("601 bytes")));
  EXPECT_THAT(type.Allocate(-1, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
  uint64_t end = static_cast<NullBuffer&>(*first).address() + 600;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto next, type.Allocate(64, BufferUsage::kAny));
    EXPECT_GE(static_cast<NullBuffer&>(*next).address(), end);
    EXPECT_EQ(static_cast<NullBuffer&>(*next).address() % 64, 0u);
    end = static_cast<NullBuffer&>(*next).address() + 64;
  }
  EXPECT_EQ(device->memory().free_bytes, 400);
}

TEST(NullDevice, Buffers_HoldNothing) {
  const auto device = Null("n");
  ASSERT_OK_AND_ASSIGN(const auto buffer,
                       device->buffer_type().Allocate(16, BufferUsage::kWeights));
  uint8_t bytes[16] = {};
  EXPECT_FALSE(buffer->type().is_host());
  EXPECT_EQ(buffer->host_data(), nullptr);
  EXPECT_OK(buffer->Set(0, bytes, 16));
  EXPECT_OK(buffer->Fill(15, 0, 1));
  EXPECT_FALSE(buffer->Set(1, bytes, 16).ok());
  EXPECT_THAT(buffer->Get(0, bytes, 16),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("holds no bytes")));
  EXPECT_THAT(buffer->Get(1, bytes, 16),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("leave")));
  EXPECT_FALSE(device->WrapHostMemory(bytes, 16, BufferUsage::kAny).ok());
}

// x + x at bytes 0 and 64 of one buffer.
class SliceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GraphBuilder builder;
    const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 1, 1}, "x");
    builder.Name(builder.Add(x, x), "sum");
    graph_ = *std::move(builder).Finish();
    buffer_ = *device_->buffer_type().Allocate(128, BufferUsage::kCompute);
    places_ = {{buffer_.get(), 0}, {buffer_.get(), 64}};
  }
  absl::Status Check() { return CheckSlice(*device_, GraphSlice{&graph_, nodes_, places_}); }

  std::unique_ptr<NullDevice> device_ = Null("n");
  Graph graph_;
  std::unique_ptr<Buffer> buffer_;
  std::vector<NodeId> nodes_ = {NodeId{0}, NodeId{1}};
  std::vector<TensorPlace> places_;
};

TEST_F(SliceTest, GoodSlice_IsPreparedAndRuns) {
  EXPECT_OK(Check());
  ASSERT_OK_AND_ASSIGN(const auto backend, device_->OpenBackend({}));
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       backend->Prepare(GraphSlice{&graph_, nodes_, places_}));
  EXPECT_OK(backend->Launch(*executable));
  EXPECT_OK(backend->Synchronize());
}

TEST_F(SliceTest, BadPlaces_AreRefusedByName) {
  const auto other = Null("other");
  const auto foreign = *other->buffer_type().Allocate(128, BufferUsage::kCompute);
  struct Case {
    TensorPlace place;
    const char* error;
  };
  const Case cases[] = {
      {{nullptr, 0}, "has no memory"},
      {{buffer_.get(), 2}, "misaligned offset 2"},
      {{buffer_.get(), 116}, "leave a buffer of 128"},
      {{buffer_.get(), -64}, "leave a buffer of 128"},
      {{foreign.get(), 0}, "cannot read other memory"},
  };
  const std::vector<TensorPlace> good = places_;
  for (const Case& c : cases) {
    for (size_t i = 0; i < 2; ++i) {
      places_ = good;
      places_[i] = c.place;
      EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kInvalidArgument,
                                    AllOf(HasSubstr("n: node 1 (add 'sum')"), HasSubstr(c.error))));
    }
  }
}

TEST_F(SliceTest, BadNodes_AreRefused) {
  nodes_ = {NodeId{2}};
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no node 2")));
  nodes_ = {kNoNode};
  EXPECT_THAT(Check(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no node -1")));
  nodes_ = {NodeId{1}};
  places_.pop_back();
  EXPECT_THAT(Check(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 places for 2 nodes")));
}

TEST(NullDevice, ConfiguredAnswers_AreGiven) {
  NullDeviceOptions options;
  options.supports = [](const Graph& graph, NodeId id) {
    return graph.node(id).op == Op::kAdd ? absl::UnimplementedError("no sums") : absl::OkStatus();
  };
  options.offload_batch = 32;
  NullDevice device(std::move(options));
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 32, 1, 1}, "x");
  const NodeId sum = builder.Add(x, x);
  const NodeId row = builder.View(x, {4, 1, 1, 1}, {4, 16, 16, 16}, 0);
  const NodeId twice = builder.Scale(row, 2);
  EXPECT_FALSE(device.Supports(builder.graph(), sum).ok());
  EXPECT_OK(device.Supports(builder.graph(), twice));
  EXPECT_TRUE(device.Wants(builder.graph(), sum));
  EXPECT_FALSE(device.Wants(builder.graph(), twice));
  const std::vector<TensorPlace> places(4);
  const std::vector<NodeId> nodes = {sum};
  EXPECT_THAT(CheckSlice(device, GraphSlice{&builder.graph(), nodes, places}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("node 1 (add"), HasSubstr("no sums"))));
}

}  // namespace
}  // namespace weft
