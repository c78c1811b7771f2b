#include "common/cpu/cpu_device.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "common/base/status_macros.h"
#include "common/graph/graph_builder.h"
#include "tests/support/device_run.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/cpu/allocation_count.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<CpuDevice> Open(int threads, int64_t limit = 0) {
  CpuDeviceOptions options;
  options.threads = threads;
  options.memory_limit_bytes = limit;
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(options);
  EXPECT_OK(device);
  return *std::move(device);
}

// One layer's worth of ops: norm, product, rope, store, attention, gated unit.
struct Layer {
  Graph graph;
  std::vector<std::pair<NodeId, std::vector<int32_t>>> integers;
  NodeId output = kNoNode;
};

Layer SmallLayer(int64_t tokens, int64_t ff = 64) {
  GraphBuilder builder;
  Layer layer;
  int32_t next = 0;
  const auto leaf = [&](DType dtype, const Extents& ne) {
    return builder.Leaf(LeafKind::kInput, next++, dtype, ne, "x");
  };
  const auto integers = [&](const Extents& ne, std::vector<int32_t> values) {
    const NodeId id = leaf(DType::kI32, ne);
    layer.integers.emplace_back(id, std::move(values));
    return id;
  };
  std::vector<int32_t> counting(static_cast<size_t>(tokens));
  for (size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<int32_t>(i);
  std::vector<int32_t> slots = counting;
  for (int32_t& slot : slots) slot += kPageTokens;
  const int64_t pages = (tokens + kPageTokens - 1) / kPageTokens;
  std::vector<int32_t> table(static_cast<size_t>(pages));
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>(i) + 1;

  const NodeId x = leaf(DType::kF32, {64, tokens, 1, 1});
  const NodeId normed = builder.RmsNorm(x, leaf(DType::kF32, {64, 1, 1, 1}), 1e-5f);
  const NodeId q = builder.MulMat(leaf(DType::kQ8_0, {64, 64, 1, 1}), normed);
  const NodeId positions = integers({tokens, 1, 1, 1}, counting);
  const NodeId heads = builder.Reshape(q, {16, 4, tokens, 1});
  const NodeId turned = builder.Rope(heads, positions, kNoNode, {RopeKind::kHalf, 16});
  const NodeId cache = builder.KvStore(leaf(DType::kF16, {16, kPageTokens, 4, pages + 1}), turned,
                                       integers({tokens, 1, 1, 1}, slots));
  const NodeId sequence =
      integers({tokens, 1, 1, 1}, std::vector<int32_t>(static_cast<size_t>(tokens), 0));
  const NodeId attended =
      builder.PagedAttention(turned, cache, cache, integers({pages, 1, 1, 1}, table), sequence,
                             positions, kNoNode, kNoNode, PagedAttentionAttributes{});
  const NodeId flat = builder.Reshape(attended, {64, tokens, 1, 1});
  const NodeId sum = builder.Add(x, flat);
  const NodeId gate = builder.MulMat(leaf(DType::kQ4_0, {64, ff, 1, 1}), sum);
  layer.output = builder.Swiglu(gate, builder.MulMat(leaf(DType::kF16, {64, ff, 1, 1}), sum));
  absl::StatusOr<Graph> graph = std::move(builder).Finish();
  EXPECT_OK(graph);
  layer.graph = *std::move(graph);
  return layer;
}

absl::Status Fill(DeviceRun& run, const Layer& layer) {
  for (int32_t i = 0; i < layer.graph.size(); ++i) {
    if (!layer.graph.IsLeaf(NodeId{i})) continue;
    // Small numbers in every format.
    const std::vector<uint8_t> bytes(
        static_cast<size_t>(ByteExtent(layer.graph.layout(NodeId{i})).value()), 0x11);
    RETURN_IF_ERROR(run.Set(NodeId{i}, bytes));
  }
  for (const auto& [leaf, values] : layer.integers) {
    RETURN_IF_ERROR(
        run.Set(leaf, {reinterpret_cast<const uint8_t*>(values.data()), values.size() * 4}));
  }
  return absl::OkStatus();
}

TEST(CpuDeviceTest, Create_BadOptions_AreErrors) {
  CpuDeviceOptions options;
  options.threads = 0;
  EXPECT_THAT(CpuDevice::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 threads")));
  options.threads = 1;
  options.memory_limit_bytes = -1;
  EXPECT_THAT(CpuDevice::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("memory limit")));
  options.memory_limit_bytes = 0;
#if defined(__x86_64__)
  options.instruction_set = InstructionSet::kNeon;
#else
  options.instruction_set = InstructionSet::kAvx2;
#endif
  EXPECT_THAT(CpuDevice::Create(options),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no kernels for")));
}

// Ranks compare it: threads do not matter, instructions do.
TEST(CpuDeviceTest, Arithmetic_IsThatOfTheInstructionSet) {
  const auto arithmetic = [](InstructionSet set, int threads) {
    CpuDeviceOptions options;
    options.instruction_set = set;
    options.threads = threads;
    const auto device = CpuDevice::Create(options);
    EXPECT_OK(device);
    return device.ok() ? (*device)->arithmetic() : std::string();
  };
  const std::string best = arithmetic(BestInstructionSet(), 1);
  EXPECT_EQ(arithmetic(BestInstructionSet(), 2), best);
  EXPECT_THAT(best, testing::StartsWith(InstructionSetName(BestInstructionSet())));
  EXPECT_EQ(arithmetic(InstructionSet::kScalar, 1) == best,
            BestInstructionSet() == InstructionSet::kScalar);
}

TEST(CpuDeviceTest, Machine_IsTheHostUnlessToldOtherwise) {
  CpuDeviceOptions options;
  options.host = "w0";
  ASSERT_OK_AND_ASSIGN(const auto alone, CpuDevice::Create(options));
  EXPECT_EQ(alone->machine(), "w0");
  options.machine = "machine";
  ASSERT_OK_AND_ASSIGN(const auto device, CpuDevice::Create(options));
  EXPECT_EQ(device->machine(), "machine");
  EXPECT_EQ(device->host(), "w0");
}

TEST(CpuDeviceTest, Capabilities_AreThoseOfHostMemory) {
  const std::unique_ptr<CpuDevice> device = Open(1);
  EXPECT_EQ(device->kind(), DeviceKind::kCpu);
  EXPECT_TRUE(device->capabilities().host_memory);
  EXPECT_TRUE(device->capabilities().wraps_host_memory);
  EXPECT_FALSE(device->capabilities().async);
  EXPECT_TRUE(device->buffer_type().is_host());
  EXPECT_GT(device->memory().total_bytes, 0);
}

TEST(CpuDeviceTest, Supports_PagesOfAWeightType_SaysWhyNot) {
  GraphBuilder builder;
  auto leaf = [&, next = 0](DType dtype, const Extents& ne) mutable {
    return builder.Leaf(LeafKind::kInput, next++, dtype, ne, "x");
  };
  const NodeId pages = leaf(DType::kQ4_0, {32, kPageTokens, 1, 2});
  const NodeId attention = builder.PagedAttention(
      leaf(DType::kF32, {32, 1, 1, 1}), pages, pages, leaf(DType::kI32, {1, 1, 1, 1}),
      leaf(DType::kI32, {1, 1, 1, 1}), leaf(DType::kI32, {1, 1, 1, 1}), kNoNode, kNoNode, {});
  const NodeId k_pages = leaf(DType::kQ4_K, {256, kPageTokens, 1, 2});
  const NodeId store =
      builder.KvStore(k_pages, leaf(DType::kF32, {256, 1, 1, 1}), leaf(DType::kI32, {1, 1, 1, 1}));
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Finish());
  const std::unique_ptr<CpuDevice> device = Open(1);
  EXPECT_THAT(device->Supports(graph, attention),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("pages of type Q4_0")));
  EXPECT_THAT(device->Supports(graph, store),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("pages of type Q4_K")));
  EXPECT_FALSE(device->Wants(graph, attention));
}

TEST(CpuDeviceTest, Supports_Receive_SaysNo) {
  ASSERT_OK_AND_ASSIGN(const auto device, CpuDevice::Create(CpuDeviceOptions{}));
  GraphBuilder builder;
  const NodeId received =
      builder.Make(Op::kReceive, ReceiveAttributes{DType::kF32, {4, 1, 1, 1}}, {});
  EXPECT_THAT(device->Supports(builder.graph(), received),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("receive")));
  EXPECT_EQ(device->WorkspaceBytes(builder.graph(), received), 0);
}

TEST(CpuDeviceTest, Supports_TensorsBeyondAnyMachine_SaysNo) {
  GraphBuilder builder;
  const NodeId a = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {int64_t{1} << 50, 0, 1, 1}, "a");
  const NodeId b = builder.Leaf(LeafKind::kInput, 1, DType::kF32, {int64_t{1} << 50, 0, 1, 1}, "b");
  const NodeId product = builder.MulMat(a, b);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Finish());
  const std::unique_ptr<CpuDevice> device = Open(1);
  EXPECT_THAT(device->Supports(graph, product),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("too large")));
  EXPECT_EQ(device->WorkspaceBytes(graph, product), 0);
}

TEST(CpuDeviceTest, Launch_IndexOutOfRange_NamesTheNodeAndLaterLaunchesWork) {
  GraphBuilder builder;
  const NodeId table = builder.Leaf(LeafKind::kWeight, 0, DType::kF32, {4, 3, 1, 1}, "table");
  const NodeId ids = builder.Leaf(LeafKind::kInput, 0, DType::kI32, {1, 1, 1, 1}, "ids");
  builder.Name(builder.GetRows(table, ids), "embedding");
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Finish());
  const std::unique_ptr<CpuDevice> device = Open(2);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DeviceRun> run, DeviceRun::Create(*device, graph));
  ASSERT_OK(run->Set(ids, {3, 0, 0, 0}));
  EXPECT_THAT(run->Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("(get_rows 'embedding'): row id 3 is not in [0, 3)")));
  ASSERT_OK(run->Set(ids, {2, 0, 0, 0}));
  EXPECT_OK(run->Run());
}

TEST(CpuDeviceTest, Launch_PageOutOfRange_IsAnErrorFromAnyThread) {
  Layer layer = SmallLayer(40);
  layer.integers[3].second.back() = 1000;  // the page table
  const std::unique_ptr<CpuDevice> device = Open(4);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DeviceRun> run,
                       DeviceRun::Create(*device, layer.graph));
  ASSERT_OK(Fill(*run, layer));
  EXPECT_THAT(run->Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("page 1000 is not in [0, 4)")));
}

TEST(CpuDeviceTest, Prepare_MisalignedWrappedMemory_IsAnError) {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 1, 1}, "x");
  const NodeId y = builder.Scale(x, 2);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Finish());
  const std::unique_ptr<CpuDevice> device = Open(1);
  std::vector<float> memory(16);
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Buffer> buffer,
      device->WrapHostMemory(reinterpret_cast<uint8_t*>(memory.data()) + 1, 60, BufferUsage::kAny));
  const TensorPlace places[] = {{buffer.get(), 0}, {buffer.get(), 16}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Backend> backend, device->OpenBackend({}));
  EXPECT_THAT(backend->Prepare({&graph, {x, y}, places}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("misaligned")));
}

TEST(CpuDeviceTest, Prepare_WorkspaceBeyondTheLimit_IsAnErrorAndOlderWorkStillRuns) {
  const Layer small = SmallLayer(1);
  const Layer large = SmallLayer(4096);
  const std::unique_ptr<CpuDevice> device = Open(2, int64_t{24} << 20);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DeviceRun> run,
                       DeviceRun::Create(*device, small.graph));
  ASSERT_OK(Fill(*run, small));
  // Room for the tensors, then none for the workspace.
  std::vector<TensorPlace> places;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Buffer> arena,
                       device->buffer_type().Allocate(16 << 20, BufferUsage::kCompute));
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Buffer> rest,
      device->buffer_type().Allocate(device->memory().free_bytes - 4096, BufferUsage::kAny));
  std::vector<NodeId> nodes;
  for (int32_t i = 0; i < large.graph.size(); ++i) {
    nodes.push_back(NodeId{i});
    places.push_back({arena.get(), large.graph.node(NodeId{i}).view_offset});
  }
  EXPECT_THAT(run->backend().Prepare({&large.graph, nodes, places}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("workspace")));
  EXPECT_OK(run->Run());
}

TEST(CpuDeviceTest, Launch_SteadyState_AllocatesNothing) {
  const Layer layer = SmallLayer(40);
  for (const int threads : {1, 3}) {
    const std::unique_ptr<CpuDevice> device = Open(threads);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DeviceRun> run,
                         DeviceRun::Create(*device, layer.graph));
    ASSERT_OK(Fill(*run, layer));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Backend> backend, device->OpenBackend({}));
    std::vector<NodeId> nodes;
    nodes.reserve(static_cast<size_t>(layer.graph.size()));
    for (int32_t i = 0; i < layer.graph.size(); ++i) nodes.push_back(NodeId{i});
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Executable> executable,
                         backend->Prepare({&layer.graph, nodes, run->places()}));
    ASSERT_OK(backend->Launch(*executable));
    const int64_t before = AllocationCount();
    int succeeded = 0;  // the matchers of this test allocate
    for (int i = 0; i < 5; ++i) succeeded += backend->Launch(*executable).ok() ? 1 : 0;
    EXPECT_EQ(AllocationCount(), before) << threads << " threads";
    EXPECT_EQ(succeeded, 5);
  }
}

// The callback comes from the launching thread, and often enough to be useful: every half
// millisecond of at least some milliseconds of work.
TEST(CpuDeviceTest, Launch_LongWork_CallsProgressFromTheLaunchingThread) {
  const Layer layer = SmallLayer(512, 4096);
  const std::unique_ptr<CpuDevice> device = Open(2);
  int calls = 0;
  bool own_thread = true;
  const std::thread::id self = std::this_thread::get_id();
  BackendOptions options;
  options.progress = [&] {
    ++calls;
    own_thread = own_thread && std::this_thread::get_id() == self;
  };
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<DeviceRun> run,
                       DeviceRun::Create(*device, layer.graph, options));
  ASSERT_OK(Fill(*run, layer));
  ASSERT_OK(run->Run());
  EXPECT_GE(calls, 3);
  EXPECT_TRUE(own_thread);
}

// Two sessions on one device: launches take turns.
TEST(CpuDeviceTest, Launch_FromTwoThreads_GivesTheSameBits) {
  const Layer layer = SmallLayer(20);
  const std::unique_ptr<CpuDevice> device = Open(3);
  std::vector<std::vector<uint8_t>> results(2);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      absl::StatusOr<std::unique_ptr<DeviceRun>> run = DeviceRun::Create(*device, layer.graph);
      ASSERT_OK(run);
      ASSERT_OK(Fill(**run, layer));
      for (int i = 0; i < 20; ++i) ASSERT_OK((*run)->Run());
      absl::StatusOr<std::vector<uint8_t>> bytes = (*run)->Get(layer.output);
      ASSERT_OK(bytes);
      results[t] = *std::move(bytes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(results[0].empty());
  EXPECT_TRUE(results[0] == results[1]);
}

TEST(CpuDeviceTest, CopyUploadDownload_MoveBytes) {
  const std::unique_ptr<CpuDevice> device = Open(1);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Backend> backend, device->OpenBackend({}));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Buffer> a,
                       device->buffer_type().Allocate(64, BufferUsage::kAny));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Buffer> b,
                       device->buffer_type().Allocate(64, BufferUsage::kAny));
  const std::vector<uint8_t> data = {9, 8, 7};
  std::vector<uint8_t> back(3);
  ASSERT_OK(backend->Upload(data.data(), *a, 10, 3));
  ASSERT_OK(backend->Copy(*a, 10, *b, 20, 3));
  ASSERT_OK(backend->Download(*b, 20, back.data(), 3));
  EXPECT_EQ(back, data);
  EXPECT_THAT(backend->Copy(*a, 63, *b, 0, 2),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::_));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Event> event, backend->NewEvent());
  EXPECT_OK(event->Synchronize());
  EXPECT_OK(backend->Record(*event));
  EXPECT_OK(backend->Wait(*event));
  EXPECT_OK(backend->Synchronize());
}

}  // namespace
}  // namespace weft
