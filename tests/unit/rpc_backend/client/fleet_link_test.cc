#include "rpc_backend/client/fleet_link.h"

#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "common/graph/graph_builder.h"
#include "common/transport/loopback/loopback_network.h"
#include "rpc_backend/client/remote_worker.h"
#include "tests/support/program_for_test.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/rpc_backend/client/fake_worker.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// y = x + x over so many F32 values, handed back.
Program Doubling(int64_t values) {
  GraphBuilder builder;
  const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {values, 1, 1, 1}, "x");
  builder.MarkOutput(builder.Add(x, x));
  const Graph graph = *std::move(builder).Finish();
  return CompileForTest(graph, std::vector<int32_t>(graph.size(), 0), 1);
}

StepReply Outputs(std::vector<std::vector<uint8_t>> outputs) {
  StepReply reply;
  reply.output.outputs = std::move(outputs);
  return reply;
}

class FleetLinkTest : public ::testing::Test {
 protected:
  static Clock::TimePoint Late() { return SystemClock().Now() + std::chrono::seconds(20); }

  void Start(int count) {
    for (int i = 0; i < count; ++i) fakes_.push_back(std::make_unique<FakeWorker>());
  }
  absl::Status Open(const FleetLinkOptions& options = {}) {
    std::vector<RemoteWorker*> workers;
    for (size_t i = 0; i < fakes_.size(); ++i) {
      if (workers_.size() <= i) {
        auto worker = RemoteWorker::Connect(
            TestWorkerOptions(fakes_[i]->address(), "w" + std::to_string(i)), nullptr);
        if (!worker.ok()) return worker.status();
        workers_.push_back(*std::move(worker));
      }
      workers.push_back(workers_[i].get());
    }
    auto link = FleetLink::Open(workers, options);
    if (!link.ok()) return link.status();
    link_ = *std::move(link);
    return absl::OkStatus();
  }
  // An instance of Doubling on the first worker.
  absl::StatusOr<InstanceId> MakeInstance(int64_t values = 4) {
    auto program = link_->host(0).Install(Doubling(values));
    if (!program.ok()) return program.status();
    return link_->host(0).Instantiate(*program, {});
  }
  absl::StatusOr<StepOutput> Run(InstanceId instance, int64_t step) {
    StepInput input;
    input.step = step;
    if (absl::Status status = link_->host(0).Launch(instance, input); !status.ok()) return status;
    return link_->host(0).Await(step, Late());
  }

  std::vector<std::unique_ptr<FakeWorker>> fakes_;
  std::vector<std::unique_ptr<RemoteWorker>> workers_;
  std::unique_ptr<FleetLink> link_;
};

TEST_F(FleetLinkTest, Open_ThreeWorkers_EveryPairConnectedOnce) {
  Start(3);
  ASSERT_OK(Open());
  EXPECT_EQ(link_->transport(), "grpc");
  EXPECT_EQ(link_->pairs().size(), 6u);
  EXPECT_EQ(link_->coordinator_number(), 3);
  EXPECT_EQ(link_->name(0), "w0");
  EXPECT_EQ(link_->name(3), "coordinator");
  const auto links = link_->MeasureLinks(std::chrono::milliseconds(20000));
  ASSERT_EQ(links.size(), 6u);
  for (const PairMeasurement& link : links) {
    EXPECT_OK(link.status);
    EXPECT_EQ(link.transport, "grpc");
    EXPECT_GT(link.latency_us, 0);
    EXPECT_GT(link.bytes_per_s, 0);
    EXPECT_LT(link.pair.a, link.pair.b);
  }
  EXPECT_OK(link_->port().failure());
}

TEST_F(FleetLinkTest, MeasureLinks_AWorkerIsLost_EndsAtOnceWithItsLoss) {
  Start(3);
  fakes_[0]->hang["MeasureLink"] = true;
  ASSERT_OK(Open());
  std::vector<PairMeasurement> links;
  std::thread measuring([&] { links = link_->MeasureLinks(std::chrono::hours(1)); });
  EXPECT_TRUE(fakes_[0]->AwaitCalls("MeasureLink", 1));
  fakes_[2]->EndSession("out of here");
  measuring.join();
  ASSERT_EQ(links.size(), 6u);
  for (const PairMeasurement& link : links) {
    EXPECT_THAT(link.status, StatusIs(absl::StatusCode::kUnavailable,
                                      AllOf(HasSubstr("w2"), HasSubstr("out of here"))));
  }
}

TEST_F(FleetLinkTest, Open_Again_NewEpochAndOldOneIsGone) {
  Start(2);
  ASSERT_OK(Open());
  EXPECT_EQ(link_->epoch(), 1u);
  const std::unique_ptr<FleetLink> old = std::move(link_);
  ASSERT_OK(Open());
  EXPECT_EQ(link_->epoch(), 2u);
}

TEST_F(FleetLinkTest, Open_BadTransports_Refused) {
  Start(1);
  FleetLinkOptions options;
  options.transport = "pigeon";
  EXPECT_THAT(Open(options), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'pigeon'")));
  LoopbackNetwork network;
  const auto loopback = network.NewTransport();
  options.transport = "loopback";
  options.transports = {loopback.get()};
  EXPECT_THAT(Open(options), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      AllOf(HasSubstr("worker w0 ("), HasSubstr("loopback"))));
  options.transport = "auto";
  ASSERT_OK(Open(options));
  EXPECT_EQ(link_->transport(), "grpc");
  EXPECT_THAT(FleetLink::Open({}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no workers")));
}

// A transport that both sides have, but that cannot connect them.
TEST_F(FleetLinkTest, Open_BestTransportCannotConnect_AutoFallsBack) {
  Start(2);
  for (const auto& fake : fakes_) {
    fake->edit_hello = [](proto::HelloReply& reply) { reply.add_transports("loopback"); };
  }
  LoopbackNetwork network;
  const auto loopback = network.NewTransport();
  FleetLinkOptions options;
  options.transports = {loopback.get()};
  ASSERT_OK(Open(options));
  EXPECT_EQ(link_->transport(), "grpc");
  EXPECT_EQ(link_->epoch(), 2u);
  options.transport = "loopback";
  EXPECT_FALSE(Open(options).ok());
}

TEST_F(FleetLinkTest, Open_WorkerRefuses_ErrorNamesIt) {
  Start(2);
  fakes_[1]->fail["OpenEpoch"] = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(HasSubstr("worker w1 ("), HasSubstr("too many"))));
}

TEST_F(FleetLinkTest, Open_AddressMakesNoSense_Refused) {
  for (const std::string& address :
       {std::string(), std::string("nowhere"), std::string(3000, 'a')}) {
    fakes_.clear();
    workers_.clear();
    Start(1);
    fakes_[0]->edit_epoch = [&](proto::OpenEpochReply& reply) { reply.set_address(address); };
    EXPECT_FALSE(Open().ok());
  }
}

TEST_F(FleetLinkTest, Install_EqualProgram_SentOnce) {
  Start(1);
  ASSERT_OK(Open());
  RemoteProgramHost& host = link_->host(0);
  ASSERT_OK_AND_ASSIGN(const ProgramId first, host.Install(Doubling(4)));
  ASSERT_OK_AND_ASSIGN(const ProgramId other, host.Install(Doubling(5)));
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK_AND_ASSIGN(const ProgramId again, host.Install(Doubling(4)));
    EXPECT_EQ(again, first);
  }
  EXPECT_NE(first, other);
  EXPECT_EQ(host.remote_counters().program_sends, 2);
  EXPECT_EQ(fakes_[0]->calls("InstallProgram"), 2);
}

TEST_F(FleetLinkTest, Instantiate_WorkerDroppedProgram_SentAgain) {
  Start(1);
  ASSERT_OK(Open());
  RemoteProgramHost& host = link_->host(0);
  ASSERT_OK_AND_ASSIGN(const ProgramId program, host.Install(Doubling(4)));
  fakes_[0]->fail["Instantiate"] = grpc::Status(grpc::StatusCode::NOT_FOUND, "no such program");
  EXPECT_THAT(host.Instantiate(program, {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no such program")));
  EXPECT_EQ(fakes_[0]->calls("InstallProgram"), 2);
  EXPECT_EQ(fakes_[0]->calls("Instantiate"), 2);
}

TEST_F(FleetLinkTest, Instantiate_ForeignBuffer_Refused) {
  Start(2);
  ASSERT_OK(Open());
  ASSERT_OK_AND_ASSIGN(const auto buffer, workers_[1]->devices()[2]->buffer_type().Allocate(
                                              100, BufferUsage::kWeights));
  ASSERT_OK_AND_ASSIGN(const ProgramId program, link_->host(0).Install(Doubling(4)));
  for (Buffer* foreign : {buffer.get(), static_cast<Buffer*>(nullptr)}) {
    const SlotBinding binding{.kind = SlotKind::kWeight, .id = 5, .buffer = foreign};
    EXPECT_THAT(link_->host(0).Instantiate(program, {binding}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("weight 5"), HasSubstr("worker w0 ("))));
  }
  EXPECT_EQ(fakes_[0]->calls("Instantiate"), 0);
}

TEST_F(FleetLinkTest, Step_Answered_OneMessageEachWay) {
  Start(1);
  std::vector<std::string> seen;
  fakes_[0]->execute = [&](int64_t step, const StepRequest& request) {
    seen.emplace_back(request.input.inputs[0].begin(), request.input.inputs[0].end());
    EXPECT_EQ(request.deadline_ms > 0, step == 2);
    EXPECT_EQ(request.input.edge_step, step + 100);
    StepReply reply = Outputs({std::vector<uint8_t>(16, static_cast<uint8_t>(step))});
    reply.output.compute_seconds = 0.25;
    return reply;
  };
  ASSERT_OK(Open());
  RemoteProgramHost& host = link_->host(0);
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, MakeInstance());
  const std::vector<uint8_t> bytes = {'a', 'b', 'c', 'd'};
  for (int64_t step = 1; step <= 3; ++step) {
    StepInput input;
    input.step = step;
    input.edge_step = step + 100;
    input.inputs = {bytes};
    if (step == 2) input.deadline = Late();
    ASSERT_OK(host.Launch(instance, input));
    ASSERT_OK_AND_ASSIGN(const StepOutput output, host.Await(step, Late()));
    EXPECT_EQ(output.outputs[0], std::vector<uint8_t>(16, static_cast<uint8_t>(step)));
  }
  EXPECT_EQ(seen, std::vector<std::string>(3, "abcd"));
  const RemoteHostCounters counters = host.remote_counters();
  EXPECT_EQ(counters.messages_sent, 3);
  EXPECT_EQ(counters.messages_received, 3);
  EXPECT_GT(counters.bytes_sent, 0);
  EXPECT_LT(counters.bytes_sent, 3 * 100);
  EXPECT_EQ(counters.compute_seconds, 0.75);
  EXPECT_EQ(host.counters().launched, 3);
  EXPECT_OK(host.Release(instance));
  StepInput input;
  input.step = 4;
  EXPECT_THAT(host.Launch(instance, input),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not known")));
}

TEST_F(FleetLinkTest, Step_AnyOrderOfAwaits_EachGetsItsOwn) {
  Start(1);
  fakes_[0]->execute = [&](int64_t step, const StepRequest&) {
    return Outputs({std::vector<uint8_t>(16, static_cast<uint8_t>(step))});
  };
  ASSERT_OK(Open());
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, MakeInstance());
  for (int64_t step = 1; step <= 4; ++step) {
    StepInput input;
    input.step = step;
    ASSERT_OK(link_->host(0).Launch(instance, input));
  }
  for (const int64_t step : {3, 1, 4, 2}) {
    ASSERT_OK_AND_ASSIGN(const StepOutput output, link_->host(0).Await(step, Late()));
    EXPECT_EQ(output.outputs[0][0], step);
  }
  EXPECT_THAT(link_->host(0).Await(3, Late()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("not in flight")));
}

TEST_F(FleetLinkTest, Step_Fails_StatusNamesWorker) {
  Start(1);
  fakes_[0]->execute = [&](int64_t, const StepRequest&) {
    StepReply reply;
    reply.status = absl::ResourceExhaustedError("node 3: no workspace");
    return reply;
  };
  ASSERT_OK(Open());
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, MakeInstance());
  EXPECT_THAT(Run(instance, 1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("worker w0 ("), HasSubstr("node 3: no workspace"))));
}

TEST_F(FleetLinkTest, Step_ReplyMakesNoSense_Refused) {
  Start(1);
  std::vector<StepReply> replies = {Outputs({}), Outputs({std::vector<uint8_t>(15, 0)}),
                                    Outputs({std::vector<uint8_t>(17, 0)}),
                                    Outputs({std::vector<uint8_t>(16, 0), {}})};
  for (const double time :
       {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    replies.push_back(Outputs({std::vector<uint8_t>(16, 0)}));
    replies.back().output.compute_seconds = time;
  }
  fakes_[0]->execute = [&](int64_t step, const StepRequest&) { return replies[step - 1]; };
  ASSERT_OK(Open());
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, MakeInstance());
  for (size_t i = 0; i < replies.size(); ++i) {
    EXPECT_THAT(Run(instance, static_cast<int64_t>(i) + 1),
                StatusIs(absl::StatusCode::kInternal,
                         AllOf(HasSubstr("worker w0 ("), HasSubstr("makes no sense"))));
  }
}

TEST_F(FleetLinkTest, Await_NoReply_DeadlineThenCancel) {
  Start(1);
  ASSERT_OK(Open());
  ASSERT_OK_AND_ASSIGN(const InstanceId instance, MakeInstance());
  StepInput input;
  input.step = 1;
  ASSERT_OK(link_->host(0).Launch(instance, input));
  EXPECT_THAT(link_->host(0).Await(1, SystemClock().Now() + std::chrono::milliseconds(30)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("worker w0 (")));
  ASSERT_OK(link_->host(0).Cancel(1));
  EXPECT_TRUE(fakes_[0]->AwaitCancelled(1));
  EXPECT_EQ(fakes_[0]->cancelled_steps(), std::vector<int64_t>{1});
  EXPECT_THAT(link_->host(0).Cancel(2),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2")));
}

TEST_F(FleetLinkTest, Loss_OneWorker_EveryWaitEndsNamingIt) {
  for (const bool dies : {false, true}) {
    fakes_.clear();
    link_.reset();
    workers_.clear();
    Start(2);
    ASSERT_OK(Open());
    ASSERT_OK_AND_ASSIGN(const InstanceId instance, MakeInstance());
    StepInput input;
    input.step = 1;
    ASSERT_OK(link_->host(0).Launch(instance, input));
    absl::Status awaited;
    std::thread waiter([&] { awaited = link_->host(0).Await(1, Late()).status(); });
    if (dies) {
      fakes_[1]->Die();
    } else {
      fakes_[1]->EndSession("enough");
    }
    waiter.join();
    const auto lost =
        StatusIs(absl::StatusCode::kUnavailable,
                 AllOf(HasSubstr(workers_[1]->label()), HasSubstr("ended the session")));
    EXPECT_THAT(awaited, lost);
    EXPECT_OK(workers_[0]->lost());
    input.step = 2;
    EXPECT_FALSE(link_->host(0).Launch(instance, input).ok());
    EXPECT_THAT(workers_[1]->lost(), lost);
  }
}

TEST_F(FleetLinkTest, Loss_BeforeOpen_ErrorNamesWorker) {
  Start(2);
  ASSERT_OK(Open());
  link_.reset();
  fakes_[0]->EndSession("enough");
  const Clock::TimePoint late = Late();
  while (workers_[0]->lost().ok() && SystemClock().Now() < late) std::this_thread::yield();
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(workers_[0]->label())));
}

TEST_F(FleetLinkTest, Edges_BetweenPorts_CarryTensors) {
  Start(1);
  ASSERT_OK(Open());
  const std::vector<uint8_t> bytes(100, 7);
  EXPECT_OK(link_->edges().Send(1, 2, 0, bytes));
  EXPECT_THAT(link_->edges().Send(1, 2, 5, bytes),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("hand-off 2 of step 1")));
}

}  // namespace
}  // namespace weft
