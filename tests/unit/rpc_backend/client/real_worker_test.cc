// Against workers as they are, in this process: real devices, both data planes.
#include <string>
#include <thread>
#include <vector>

#include "common/base/random.h"
#include "common/cpu/cpu_device.h"
#include "common/digest/file_identity.h"
#include "common/gguf/gguf_file.h"
#include "common/program/local_program_host.h"
#include "common/transport/ucx/ucx_transport.h"
#include "rpc_backend/client/fleet_link.h"
#include "rpc_backend/client/remote_device.h"
#include "rpc_backend/client/remote_weights.h"
#include "rpc_backend/client/remote_worker.h"
#include "rpc_backend/client/worker_connection.h"
#include "tests/support/random_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_seed.h"
#include "tests/unit/common/program/program_fixture.h"
#include "worker/worker.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RealWorkerTest : public ::testing::Test {
 protected:
  static Clock::TimePoint Late() { return SystemClock().Now() + std::chrono::seconds(60); }

  void Start(int count, const std::string& transport = "grpc") {
    for (int i = 0; i < count; ++i) {
      WorkerOptions options;
      options.listen = "127.0.0.1:0";
      options.threads = 1;
      options.transport = transport;
      ASSERT_OK_AND_ASSIGN(std::unique_ptr<Worker> worker, Worker::Start(options, {}, logger_));
      RemoteWorkerOptions remote;
      remote.name = "w" + std::to_string(i);
      remote.address = worker->address();
      servers_.push_back(std::move(worker));
      ASSERT_OK_AND_ASSIGN(std::unique_ptr<RemoteWorker> connected,
                           RemoteWorker::Connect(remote, nullptr));
      workers_.push_back(std::move(connected));
    }
  }
  void Link(const std::string& transport = "grpc") {
    FleetLinkOptions options;
    options.transport = transport;
    if (transport != "grpc") {
      ASSERT_OK_AND_ASSIGN(ucx_, NewUcxTransport({}));
      options.transports = {ucx_.get()};
    }
    std::vector<RemoteWorker*> workers;
    for (const auto& worker : workers_) workers.push_back(worker.get());
    ASSERT_OK_AND_ASSIGN(link_, FleetLink::Open(workers, options));
  }

  // A random graph on the first worker's processor and on this process's: equal bits, step by step.
  void CheckRandomProgram(uint64_t seed) {
    Random random(seed);
    const Graph graph = MakeRandomGraph(random, 40);
    const Program program = CompileForTest(graph, std::vector<int32_t>(graph.size(), 0), 1);
    CpuDeviceOptions cpu;
    cpu.threads = 1;
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<CpuDevice> device, CpuDevice::Create(cpu));
    LocalProgramHostOptions options;
    options.devices = {device.get()};
    ASSERT_OK_AND_ASSIGN(const auto local, LocalProgramHost::Create(std::move(options)));
    ProgramHost& remote = link_->host(0);

    HostGraph values(graph);
    FillLeafs(random, graph, values);
    const BoundSlots local_slots = BindForTest(program, {device.get()});
    const BoundSlots remote_slots = BindForTest(program, {workers_[0]->devices()[0]});
    UploadBound(graph, values, local_slots);
    UploadBound(graph, values, remote_slots);
    InstanceId local_instance{};
    InstanceId remote_instance{};
    for (const auto& [host, slots, instance] :
         {std::tuple(static_cast<ProgramHost*>(local.get()), &local_slots, &local_instance),
          std::tuple(&remote, &remote_slots, &remote_instance)}) {
      ASSERT_OK_AND_ASSIGN(const ProgramId id, host->Install(program));
      ASSERT_OK_AND_ASSIGN(*instance, host->Instantiate(id, slots->bindings));
    }
    for (int64_t step = 1; step <= 3; ++step) {
      FillLeafs(random, graph, values);
      const std::vector<std::vector<uint8_t>> bytes = InputBytes(graph, values);
      StepInput input;
      input.step = step;
      input.inputs = Spans(bytes);
      input.table_updates = TableContent(graph, values);
      ASSERT_OK(local->Launch(local_instance, input));
      input.step = ++remote_step_;
      ASSERT_OK(remote.Launch(remote_instance, input));
      ASSERT_OK_AND_ASSIGN(const StepOutput want, local->Await(step, Late()));
      ASSERT_OK_AND_ASSIGN(const StepOutput got, remote.Await(remote_step_, Late()));
      EXPECT_TRUE(got.outputs == want.outputs) << "seed " << seed << ", step " << step;
    }
    EXPECT_OK(remote.Release(remote_instance));
  }

  Logger logger_{"test", LogLevel::kError};
  std::unique_ptr<Transport> ucx_;
  std::vector<std::unique_ptr<Worker>> servers_;
  std::vector<std::unique_ptr<RemoteWorker>> workers_;
  std::unique_ptr<FleetLink> link_;
  int64_t remote_step_ = 0;
};

TEST_F(RealWorkerTest, Inventory_AsTheDeviceItself) {
  Start(1);
  CpuDeviceOptions options;
  options.threads = 1;
  ASSERT_OK_AND_ASSIGN(const auto cpu, CpuDevice::Create(options));
  ASSERT_EQ(workers_[0]->devices().size(), 1u);
  Device& remote = *workers_[0]->devices()[0];
  EXPECT_EQ(remote.name(), "w0.cpu0");
  EXPECT_EQ(remote.kind(), DeviceKind::kCpu);
  EXPECT_EQ(remote.buffer_type().alignment(), cpu->buffer_type().alignment());
  EXPECT_TRUE(remote.buffer_type().is_host());
  EXPECT_OK(remote.Supports(remote.buffer_type()));
  EXPECT_FALSE(remote.Supports(cpu->buffer_type()).ok());
  Random random(TestSeed(3));
  const Graph graph = MakeRandomGraph(random, 60);
  for (int32_t i = 0; i < graph.size(); ++i) {
    EXPECT_EQ(remote.Supports(graph, NodeId{i}).ok(), cpu->Supports(graph, NodeId{i}).ok());
    EXPECT_EQ(remote.Wants(graph, NodeId{i}), cpu->Wants(graph, NodeId{i}));
    if (graph.Executes(NodeId{i})) {
      EXPECT_EQ(remote.WorkspaceBytes(graph, NodeId{i}), cpu->WorkspaceBytes(graph, NodeId{i}));
    }
  }
  EXPECT_EQ(workers_[0]->remote_devices()[0]->queries(), 1);
}

TEST_F(RealWorkerTest, Buffers_RoundTrip) {
  Start(1);
  BufferType& type = workers_[0]->devices()[0]->buffer_type();
  ASSERT_OK_AND_ASSIGN(const auto buffer, type.Allocate(5'000'000, BufferUsage::kAny));
  ASSERT_OK(buffer->Fill(0, 7, 5'000'000));
  const std::string text = "in the middle of it";
  ASSERT_OK(buffer->Set(4'194'300, text.data(), static_cast<int64_t>(text.size())));
  std::string read(text.size() + 2, '\0');
  ASSERT_OK(buffer->Get(4'194'299, read.data(), static_cast<int64_t>(read.size())));
  EXPECT_EQ(read, "\7" + text + "\7");
  EXPECT_THAT(type.Allocate(int64_t{1} << 41, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("w0")));
}

TEST_F(RealWorkerTest, Steps_OverGrpc_EqualBits) {
  Start(1);
  Link();
  ASSERT_NE(link_, nullptr);
  const uint64_t seed = TestSeed(100);
  for (uint64_t i = 0; i < TestCount(10); ++i) CheckRandomProgram(seed + i);
  EXPECT_EQ(link_->host(0).remote_counters().messages_sent, remote_step_);
  EXPECT_EQ(link_->host(0).remote_counters().messages_received, remote_step_);
  ASSERT_OK_AND_ASSIGN(const WorkerStatistics statistics, workers_[0]->Statistics());
  EXPECT_EQ(statistics.steps, remote_step_);
}

TEST_F(RealWorkerTest, Steps_OverUcx_EqualBits) {
  Start(1, "auto");
  if (workers_[0]->info().transports.size() < 2) GTEST_SKIP() << "this machine has no UCX";
  Link("auto");
  ASSERT_NE(link_, nullptr);
  EXPECT_EQ(link_->transport(), "ucx");
  const uint64_t seed = TestSeed(200);
  for (uint64_t i = 0; i < TestCount(10); ++i) CheckRandomProgram(seed + i);
}

TEST_F(RealWorkerTest, Links_ThreeWorkers_Measured) {
  Start(3);
  Link();
  ASSERT_NE(link_, nullptr);
  for (const PairMeasurement& link : link_->MeasureLinks(std::chrono::milliseconds(20000))) {
    EXPECT_OK(link.status);
    EXPECT_GT(link.bytes_per_s, 0);
    EXPECT_GT(link.latency_us, 0);
    EXPECT_EQ(link.transport, "grpc");
  }
}

TEST_F(RealWorkerTest, Weights_FromFileAndFromHere_EqualBytes) {
  Start(2);
  Link();
  ASSERT_NE(link_, nullptr);
  const std::string path =
      std::string(std::getenv("WEFT_SOURCE_DIR")) + "/models/shakespeare-q8_0.gguf";
  ASSERT_OK_AND_ASSIGN(const auto file, MappedFile::Open(path));
  ASSERT_OK_AND_ASSIGN(const FileIdentity identity, IdentifyGguf(*file));
  const auto size = static_cast<int64_t>(file->bytes().size());
  const std::vector<RemoteWeightFile> files = {
      {path, size, identity.digest.Raw(), identity.data_offset}};
  const int64_t begin = 100 * 4096;
  const std::vector<RemoteWeightItem> items = {
      {.weight = 0,
       .device = 0,
       .reserve_bytes = 3'000'000,
       .slices = {{0, begin, 1'500'000}},
       .name = "one"},
      {.weight = 1,
       .device = 0,
       .reserve_bytes = 30000,
       .slices = {{0, begin + 4096, 20000}, {0, begin, 1000}},
       .name = "two"}};
  const SliceReader reader =
      [&](const RemoteWeightSlice& slice) -> absl::StatusOr<absl::Span<const uint8_t>> {
    return file->bytes().subspan(slice.offset, slice.bytes);
  };
  for (size_t w = 0; w < 2; ++w) {
    LoadRemoteWeightsOptions options;
    options.ignore_files = w == 1;
    ASSERT_OK_AND_ASSIGN(
        const RemoteWeights loaded,
        LoadRemoteWeights(*link_, static_cast<int32_t>(w), files, items, reader, options));
    EXPECT_EQ(loaded.bytes_streamed, w == 1 ? 1'521'000 : 0);
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(loaded.weights[i].source,
                w == 1 ? RemoteWeightSource::kStream : RemoteWeightSource::kFile);
      std::string want;
      for (const RemoteWeightSlice& slice : items[i].slices) {
        const auto bytes = *reader(slice);
        want.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      }
      std::string got(want.size(), '\0');
      ASSERT_OK(loaded.weights[i].buffer->Get(loaded.weights[i].offset, got.data(),
                                              static_cast<int64_t>(got.size())));
      EXPECT_TRUE(got == want) << "weight " << i << " of worker " << w;
    }
  }
}

// A load that is cut in the middle, as when its coordinator is killed, and the next one.
TEST_F(RealWorkerTest, Weights_CutOff_GoOnFromTheCache) {
  const TemporaryFolder folder;
  std::string content(static_cast<size_t>(5 << 20), '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 + i / 251);
  const auto bytes = static_cast<int64_t>(content.size());
  const std::vector<RemoteWeightFile> files = {{"/model.gguf", bytes, std::string(32, 'i'), 0}};
  const std::vector<RemoteWeightItem> items = {{.weight = 0,
                                                .device = 0,
                                                .reserve_bytes = bytes,
                                                .slices = {{0, 0, bytes}},
                                                .name = "large"}};
  int64_t ends_at = 2 << 20;  // then the file cannot be read any more
  const SliceReader reader =
      [&](const RemoteWeightSlice& slice) -> absl::StatusOr<absl::Span<const uint8_t>> {
    if (slice.offset >= ends_at) return absl::AbortedError("cut");
    return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(content.data()), content.size())
        .subspan(slice.offset, slice.bytes);
  };
  WorkerOptions options;
  options.listen = "127.0.0.1:0";
  options.threads = 1;
  options.transport = "grpc";
  options.no_files = true;
  options.cache = folder.File("cache");
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Worker> worker, Worker::Start(options, {}, logger_));
  RemoteWorkerOptions remote;
  remote.address = worker->address();
  for (const bool cut : {true, false}) {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<RemoteWorker> connected,
                         RemoteWorker::Connect(remote, nullptr));
    FleetLinkOptions link_options;
    link_options.transport = "grpc";
    ASSERT_OK_AND_ASSIGN(const auto link, FleetLink::Open({connected.get()}, link_options));
    if (!cut) ends_at = bytes;
    const auto loaded = LoadRemoteWeights(*link, 0, files, items, reader, {});
    if (cut) {
      EXPECT_THAT(loaded, StatusIs(absl::StatusCode::kAborted));
      // Gone when all that arrived is in the cache.
      connected->Close();
      ASSERT_TRUE(worker->AwaitSessions(0, Late()));
      continue;
    }
    ASSERT_OK(loaded);
    EXPECT_EQ(loaded->bytes_streamed, 3 << 20);
    std::string got(static_cast<size_t>(bytes), '\0');
    ASSERT_OK(loaded->weights[0].buffer->Get(loaded->weights[0].offset, got.data(), bytes));
    EXPECT_TRUE(got == content);
  }
}

TEST_F(RealWorkerTest, Loss_OneOfTwoWorkers_EverythingEndsAndRestartWorks) {
  Start(2);
  Link();
  ASSERT_NE(link_, nullptr);
  const std::string address = servers_[1]->address();
  servers_[1].reset();
  const Clock::TimePoint late = Late();
  while (workers_[1]->lost().ok() && SystemClock().Now() < late) std::this_thread::yield();
  EXPECT_THAT(workers_[1]->lost(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("worker w1 ("), HasSubstr("ended the session"))));
  EXPECT_FALSE(link_->port().failure().ok());
  EXPECT_FALSE(workers_[1]->devices()[0]->buffer_type().Allocate(10, BufferUsage::kAny).ok());
  EXPECT_OK(workers_[0]->lost());
  // A new one at the same address, and a new epoch with the one that stayed.
  WorkerOptions options;
  options.listen = address;
  options.threads = 1;
  options.transport = "grpc";
  ASSERT_OK_AND_ASSIGN(servers_[1], Worker::Start(options, {}, logger_));
  EXPECT_FALSE(workers_[1]->Statistics().ok());
  const int64_t stale = workers_[1]->connection().session();
  link_.reset();
  RemoteWorkerOptions remote;
  remote.name = "w1";
  remote.address = address;
  ASSERT_OK_AND_ASSIGN(workers_[1], RemoteWorker::Connect(remote, nullptr));
  EXPECT_NE(workers_[1]->connection().session(), stale);
  Link();
  ASSERT_NE(link_, nullptr);
  EXPECT_EQ(link_->epoch(), 2u);
  CheckRandomProgram(TestSeed(300));
}

}  // namespace
}  // namespace weft
