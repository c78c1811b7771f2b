// A session of a worker, driven over a loopback data plane as a coordinator would.
#include "worker/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/cpu/cpu_device.h"
#include "common/graph/graph_builder.h"
#include "common/transport/loopback/loopback_network.h"
#include "rpc_backend/protocol/message_kinds.h"
#include "rpc_backend/protocol/step_codec.h"
#include "tests/support/program_for_test.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kWorker = 0;
constexpr int32_t kCoordinator = 1;
constexpr uint32_t kEpoch = 3;

// y = x + w, for four values.
struct AddModel {
  AddModel() {
    GraphBuilder builder;
    const NodeId x = builder.Leaf(LeafKind::kInput, 0, DType::kF32, {4, 1, 1, 1}, "x");
    const NodeId w = builder.Leaf(LeafKind::kWeight, 0, DType::kF32, {4, 1, 1, 1}, "w");
    builder.MarkOutput(builder.Add(x, w));
    graph = *std::move(builder).Finish();
    program = CompileForTest(graph, std::vector<int32_t>(graph.size(), 0), 1);
  }
  Graph graph;
  Program program;
};

Clock::TimePoint Soon() { return SystemClock().Now() + std::chrono::seconds(60); }

absl::Span<const uint8_t> BytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)};
}

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    cpu_ = *CpuDevice::Create(CpuDeviceOptions());
    worker_transport_ = network_.NewTransport();
    coordinator_transport_ = network_.NewTransport();
    parts_.devices = {cpu_.get()};
    parts_.transports = {worker_transport_.get()};
    parts_.files = &files_;
    parts_.logger = &logger_;
    session_ = std::make_unique<Session>(1, "test", parts_);
  }

  void OpenEpoch(uint32_t number = kEpoch) {
    EpochOptions options;
    options.epoch = number;
    options.own_number = kWorker;
    options.coordinator_number = kCoordinator;
    options.expected = {{kCoordinator, "coordinator", token_}};
    const auto address = session_->OpenEpoch("loopback", options);
    ASSERT_THAT(address, IsOk());
    PortOptions port;
    port.epoch = number;
    port.own_number = kCoordinator;
    port_ = *coordinator_transport_->NewPort(port);
    ASSERT_THAT(port_->Connect({kWorker, "w0", token_}, *address, Soon()), IsOk());
    epoch_ = number;
  }

  // Installs the model with w = {10, 20, 30, 40}.
  InstanceId Prepare() {
    const auto buffer = session_->Allocate(0, 16, BufferUsage::kWeights);
    EXPECT_THAT(buffer, IsOk());
    EXPECT_THAT(session_->Write(*buffer, 0, BytesOf({10, 20, 30, 40})), IsOk());
    buffer_ = *buffer;
    const auto program = session_->Install(model_.program);
    EXPECT_THAT(program, IsOk());
    const HandleBinding binding{SlotKind::kWeight, 0, *buffer, 0};
    const auto made = session_->Instantiate(*program, {&binding, 1});
    EXPECT_THAT(made, IsOk());
    return made.ok() ? made->instance : InstanceId{};
  }

  void Execute(InstanceId instance, int64_t step, const std::vector<float>& x) {
    StepRequest request;
    request.instance = instance;
    request.deadline_ms = 60'000;
    request.input.step = step;
    request.input.inputs = {BytesOf(x)};
    std::vector<uint8_t> bytes;
    EncodeStepRequest(request, bytes);
    SendRaw(MessageKind::kExecute, step, bytes);
  }

  void SendRaw(MessageKind kind, int64_t step, absl::Span<const uint8_t> bytes) {
    ASSERT_THAT(SendBytes(*port_, kWorker, {epoch_, static_cast<uint32_t>(kind), step, 0}, bytes),
                IsOk());
  }

  // The reply's values. Errors: that of the step.
  absl::StatusOr<std::vector<float>> Reply(int64_t step) {
    MessageFilter filter;
    filter.kinds = KindBit(static_cast<uint32_t>(MessageKind::kReply));
    filter.step = step;
    const auto message = port_->Receive(filter, Soon());
    if (!message.ok()) return message.status();
    StepReply reply;
    const absl::Status decoded = DecodeStepReply(message->payload, WireLimits(), reply);
    if (!decoded.ok()) return decoded;
    if (!reply.status.ok()) return reply.status;
    std::vector<float> values(4);
    EXPECT_EQ(reply.output.outputs.at(0).size(), 16);
    std::copy_n(reply.output.outputs[0].data(), 16, reinterpret_cast<uint8_t*>(values.data()));
    return values;
  }

  const AddModel model_;
  LoopbackNetwork network_;
  Logger logger_{"test", LogLevel::kError};
  ModelFiles files_;
  std::unique_ptr<CpuDevice> cpu_;
  std::unique_ptr<Transport> worker_transport_;
  std::unique_ptr<Transport> coordinator_transport_;
  WorkerParts parts_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<MessagePort> port_;
  const PeerToken token_ = {1, 2, 3};
  uint32_t epoch_ = 0;
  int64_t buffer_ = 0;
};

using Values = std::vector<float>;

TEST_F(SessionTest, Execute_EachStep_GivesOneReply) {
  OpenEpoch();
  const InstanceId instance = Prepare();
  for (int64_t step = 1; step <= 5; ++step) {
    const auto at = static_cast<float>(step);
    Execute(instance, step, {at, at, at, at});
    const auto reply = Reply(step);
    ASSERT_THAT(reply, IsOk());
    EXPECT_EQ(*reply, (Values{10 + at, 20 + at, 30 + at, 40 + at}));
  }
  const SessionStatistics statistics = session_->statistics();
  EXPECT_EQ(statistics.epoch.steps, 5);
  ASSERT_EQ(statistics.peers.size(), 1);
  EXPECT_EQ(statistics.peers[0].Total().messages_received, 5);
  EXPECT_EQ(statistics.peers[0].Total().messages_sent, 5);
}

TEST_F(SessionTest, Execute_StepsOutOfOrder_RunInOrder) {
  OpenEpoch();
  const InstanceId instance = Prepare();
  Execute(instance, 2, {2, 2, 2, 2});
  Execute(instance, 1, {1, 1, 1, 1});
  EXPECT_EQ(*Reply(1), (Values{11, 21, 31, 41}));
  EXPECT_EQ(*Reply(2), (Values{12, 22, 32, 42}));
}

TEST_F(SessionTest, Execute_Garbage_IsRefusedAndSoIsWhatFollows) {
  OpenEpoch();
  const InstanceId instance = Prepare();
  SendRaw(MessageKind::kExecute, 1, std::vector<uint8_t>(100, 0xff));
  EXPECT_THAT(Reply(1), StatusIs(absl::StatusCode::kInvalidArgument));
  Execute(instance, 2, {2, 2, 2, 2});
  EXPECT_THAT(Reply(2), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("step 1")));
}

TEST_F(SessionTest, Execute_UnknownInstanceOrWrongInputs_IsAnError) {
  for (uint32_t epoch = 1; epoch <= 2; ++epoch) {
    OpenEpoch(epoch);
    const InstanceId instance = Prepare();
    if (epoch == 1) {
      Execute(InstanceId{77}, 1, {1, 1, 1, 1});
    } else {
      Execute(instance, 1, {1, 1, 1});
    }
    EXPECT_FALSE(Reply(1).ok());
  }
}

TEST_F(SessionTest, Execute_StepThatIsOver_IsRefused) {
  OpenEpoch();
  const InstanceId instance = Prepare();
  Execute(instance, 1, {1, 1, 1, 1});
  ASSERT_THAT(Reply(1), IsOk());
  Execute(instance, 1, {1, 1, 1, 1});
  EXPECT_THAT(Reply(1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 is next")));
}

TEST_F(SessionTest, OpenEpoch_Again_ProgramsGoAndBuffersStay) {
  OpenEpoch(1);
  const InstanceId instance = Prepare();
  OpenEpoch(2);
  Execute(instance, 1, {1, 1, 1, 1});
  EXPECT_FALSE(Reply(1).ok());
  OpenEpoch(5);
  std::vector<float> w(4);
  ASSERT_THAT(session_->Read(buffer_, 0, {reinterpret_cast<uint8_t*>(w.data()), 16}), IsOk());
  EXPECT_EQ(w, (Values{10, 20, 30, 40}));
  Execute(Prepare(), 1, {1, 1, 1, 1});
  EXPECT_EQ(*Reply(1), (Values{11, 21, 31, 41}));
}

TEST_F(SessionTest, OpenEpoch_NotAhead_IsRefused) {
  OpenEpoch(4);
  EpochOptions options;
  options.epoch = 4;
  options.own_number = kWorker;
  options.coordinator_number = kCoordinator;
  EXPECT_THAT(session_->OpenEpoch("loopback", options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("epoch 4")));
  EXPECT_THAT(session_->OpenEpoch("pigeons", options),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("pigeons")));
}

TEST_F(SessionTest, Free_BoundBuffer_TheInstanceGoesWithIt) {
  OpenEpoch();
  const InstanceId instance = Prepare();
  EXPECT_THAT(session_->Free(buffer_), IsOk());
  Execute(instance, 1, {1, 1, 1, 1});
  EXPECT_FALSE(Reply(1).ok());
  EXPECT_THAT(session_->Free(buffer_), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(SessionTest, Buffers_WrongHandleRangeOrSize_AreErrors) {
  OpenEpoch();
  Prepare();
  std::vector<uint8_t> data(32);
  EXPECT_THAT(session_->Read(99, 0, absl::MakeSpan(data)), StatusIs(absl::StatusCode::kNotFound));
  for (const int64_t offset : {int64_t{-1}, int64_t{1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(session_->Read(buffer_, offset, absl::MakeSpan(data).first(16)),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(session_->Write(buffer_, offset, absl::MakeConstSpan(data).first(16)),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(session_->Fill(buffer_, offset, 16, 1),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(session_->Allocate(1, 16, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(session_->Allocate(0, -1, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(session_->Allocate(0, std::numeric_limits<int64_t>::max(), BufferUsage::kAny).ok());
}

TEST_F(SessionTest, Instantiate_ForeignHandleOrHostileProgram_IsRefused) {
  OpenEpoch();
  Prepare();
  const auto program = session_->Install(model_.program);
  ASSERT_THAT(program, IsOk());
  const HandleBinding unknown{SlotKind::kWeight, 0, 12345, 0};
  EXPECT_THAT(session_->Instantiate(*program, {&unknown, 1}),
              StatusIs(absl::StatusCode::kNotFound));
  const HandleBinding beyond{SlotKind::kWeight, 0, buffer_, 64};
  EXPECT_FALSE(session_->Instantiate(*program, {&beyond, 1}).ok());
  EXPECT_FALSE(session_->Instantiate(ProgramId{99}, {}).ok());
  Program wrong = model_.program;
  wrong.places[2].offset = 1 << 20;
  EXPECT_FALSE(session_->Install(wrong).ok());
  wrong = model_.program;
  wrong.devices.resize(5);
  EXPECT_THAT(session_->Install(wrong),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("5 devices")));
}

TEST_F(SessionTest, Coordinator_Lost_TheEpochEndsAndTheSessionStays) {
  OpenEpoch(1);
  Prepare();
  port_.reset();
  // The next epoch works as the first one did.
  OpenEpoch(2);
  Execute(Prepare(), 1, {1, 1, 1, 1});
  EXPECT_EQ(*Reply(1), (Values{11, 21, 31, 41}));
}

TEST_F(SessionTest, Abort_EverythingLater_EndsWithTheReason) {
  OpenEpoch();
  Prepare();
  session_->Abort(absl::UnavailableError("over"));
  EXPECT_THAT(session_->Install(model_.program), StatusIs(absl::StatusCode::kUnavailable));
  EpochOptions options;
  options.epoch = 9;
  EXPECT_THAT(session_->OpenEpoch("loopback", options), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace weft
