// A whole worker in this process, seen through its control address.
#include "worker/worker.h"

#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <httplib.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/worker.grpc.pb.h"
#include "rpc_backend/protocol/content_digest.h"
#include "rpc_backend/protocol/hello_codec.h"
#include "rpc_backend/protocol/version.h"
#include "tests/support/fake_device.h"
#include "tests/support/generic_call.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_devices.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

WorkerOptions OptionsWith(std::vector<std::string> devices) {
  WorkerOptions options;
  options.listen = "127.0.0.1:0";
  options.name = "w";
  options.devices = std::move(devices);
  options.threads = 1;
  options.transport = "grpc";
  return options;
}

WorkerOptions TrustingOptions() {
  WorkerOptions options = OptionsWith({"cpu"});
  options.self_test = false;
  return options;
}

std::unique_ptr<proto::Worker::Stub> StubOf(const Worker& worker) {
  return proto::Worker::NewStub(
      grpc::CreateChannel(worker.address(), grpc::InsecureChannelCredentials()));
}

// A session that is spoken by hand.
struct RawSession {
  explicit RawSession(const Worker& worker)
      : stub(StubOf(worker)), stream(stub->Session(&context)) {}
  bool Open() {
    proto::SessionRequest request;
    request.set_coordinator("c");
    return stream->Write(request) && stream->Read(&reply);
  }

  grpc::ClientContext context;
  const std::unique_ptr<proto::Worker::Stub> stub;
  const std::unique_ptr<grpc::ClientReaderWriter<proto::SessionRequest, proto::SessionReply>>
      stream;
  proto::SessionReply reply;  // the last
};

// What the worker tells a coordinator that says hello.
absl::StatusOr<WorkerHello> HelloFrom(const Worker& worker,
                                      grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
  const std::unique_ptr<proto::Worker::Stub> stub = StubOf(worker);
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_seconds(30, GPR_TIMESPAN));
  context.set_compression_algorithm(compression);
  CoordinatorHello own;
  own.protocol = OwnHello();
  own.protocol.features.push_back(std::string(200, 'x'));  // worth compressing
  proto::HelloRequest request;
  EncodeHello(own, request);
  proto::HelloReply reply;
  const grpc::Status status = stub->Hello(&context, request, &reply);
  if (!status.ok()) return absl::UnavailableError(status.error_message());
  return DecodeHello(reply);
}

class WorkerTest : public testing::Test {
 protected:
  Logger logger_{"worker_test", LogLevel::kError};
};

TEST_F(WorkerTest, Start_WithAWrongDevice_ListsItsQuarantine) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Worker> worker,
      Worker::Start(OptionsWith({"cpu", "fake:1", "wrong-rope:1"}), MakeTestDevices, logger_));
  ASSERT_OK_AND_ASSIGN(const WorkerHello hello, HelloFrom(*worker));
  ASSERT_EQ(hello.devices.size(), 3u);  // GPUs first
  EXPECT_THAT(hello.devices[0].quarantined, IsEmpty());
  EXPECT_THAT(hello.devices[1].quarantined, ElementsAre(StartsWith("rope F32: error 2")));
  EXPECT_THAT(hello.devices[2].quarantined, IsEmpty());
}

TEST_F(WorkerTest, Start_WithoutSelfTest_TrustsTheDevice) {
  WorkerOptions options = OptionsWith({"wrong-rope:1"});
  options.self_test = false;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Worker> worker,
                       Worker::Start(options, MakeTestDevices, logger_));
  ASSERT_OK_AND_ASSIGN(const WorkerHello hello, HelloFrom(*worker));
  ASSERT_EQ(hello.devices.size(), 1u);
  EXPECT_THAT(hello.devices[0].quarantined, IsEmpty());
}

TEST_F(WorkerTest, Start_WithUnknownDevices_NamesTheFlag) {
  for (const char* kind : {"gpu", "fake:0", "fake:x", "fake", "wrong-rope:17"}) {
    EXPECT_THAT(Worker::Start(OptionsWith({kind}), MakeTestDevices, logger_),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--devices")))
        << kind;
  }
}

// --- Health, metrics, drain ---

// What the standard health service says; "" where it says nothing.
std::string HealthFrom(const Worker& worker) {
  const auto channel = grpc::CreateChannel(worker.address(), grpc::InsecureChannelCredentials());
  std::string reply;
  const std::string whole_server;  // an empty message
  if (!CallByPath(channel, "/grpc.health.v1.Health/Check", whole_server, &reply).ok()) return "";
  if (reply.size() != 2) return "";
  // Field 1, an enum: 1 is SERVING, 2 is NOT_SERVING.
  return reply[1] == 1 ? "SERVING" : "NOT_SERVING";
}

TEST_F(WorkerTest, Drain_IsSeenByHealthProbesAndCoordinators) {
  WorkerOptions options = TrustingOptions();
  options.metrics_port = 0;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Worker> worker,
                       Worker::Start(options, MakeTestDevices, logger_));
  httplib::Client probe("127.0.0.1", worker->metrics_port());
  EXPECT_EQ(HealthFrom(*worker), "SERVING");
  EXPECT_EQ(probe.Get("/readyz")->status, 200);
  worker->Drain();
  EXPECT_EQ(HealthFrom(*worker), "NOT_SERVING");
  EXPECT_EQ(probe.Get("/readyz")->status, 503);
  EXPECT_EQ(probe.Get("/livez")->status, 200);
  EXPECT_THAT(probe.Get("/metrics")->body, HasSubstr("weft_worker_draining 1\n"));
  worker->CheckSessions();
  EXPECT_EQ(HealthFrom(*worker), "NOT_SERVING");
  ASSERT_OK_AND_ASSIGN(const WorkerHello hello, HelloFrom(*worker));
  EXPECT_TRUE(hello.draining);
}

TEST_F(WorkerTest, Drain_RefusesSessionsAndTellsThoseThatAreOpen) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Worker> worker,
                       Worker::Start(TrustingOptions(), MakeTestDevices, logger_));
  RawSession session(*worker);
  const auto& stub = session.stub;
  const auto& stream = session.stream;
  proto::SessionReply& reply = session.reply;
  ASSERT_TRUE(session.Open());
  EXPECT_FALSE(reply.draining());
  worker->Drain();
  proto::SessionRequest request;
  request.set_ping(1);
  ASSERT_TRUE(stream->Write(request) && stream->Read(&reply));
  EXPECT_EQ(reply.ping(), 1);
  EXPECT_TRUE(reply.draining());
  grpc::ClientContext late_context;
  const auto late = stub->Session(&late_context);
  request.Clear();
  request.set_coordinator("d");
  late->Write(request);
  EXPECT_FALSE(late->Read(&reply));
  const grpc::Status refused = late->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("draining"));
  EXPECT_EQ(worker->sessions(), 1);
  stream->WritesDone();
  EXPECT_TRUE(worker->AwaitSessions(0, SystemClock().Now() + std::chrono::seconds(30)));
}

// --- What it refuses of a call ---

// gRPC would decompress a message of any size before it looks at how large it is.
TEST_F(WorkerTest, CompressedMessage_IsRefused) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Worker> worker,
                       Worker::Start(TrustingOptions(), MakeTestDevices, logger_));
  ASSERT_OK(HelloFrom(*worker).status());
  for (const grpc_compression_algorithm kind : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    EXPECT_THAT(HelloFrom(*worker, kind), StatusIs(absl::StatusCode::kUnavailable));
  }
  EXPECT_OK(HelloFrom(*worker).status());
}

TEST_F(WorkerTest, ContentThatWasChangedOnItsWay_IsRefused) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Worker> worker,
                       Worker::Start(TrustingOptions(), MakeTestDevices, logger_));
  RawSession session(*worker);
  const auto& stub = session.stub;
  ASSERT_TRUE(session.Open());
  // The digest is of other content than what comes.
  const auto call = [&](auto request, const auto& method) {
    grpc::ClientContext context;
    context.set_deadline(gpr_time_from_seconds(30, GPR_TIMESPAN));
    request.set_session(session.reply.session());
    request.set_sha256(ContentDigest("what was sent"));
    const grpc::Status status = method(context, request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
    EXPECT_THAT(status.error_message(), HasSubstr("was changed on its way"));
  };
  call(proto::InstallProgramRequest(), [&](auto& context, const auto& request) {
    proto::InstallProgramReply reply;
    return stub->InstallProgram(&context, request, &reply);
  });
  call(proto::InstantiateRequest(), [&](auto& context, const auto& request) {
    proto::InstantiateReply reply;
    return stub->Instantiate(&context, request, &reply);
  });
  call(proto::FindWeightsRequest(), [&](auto& context, const auto& request) {
    proto::FindWeightsReply reply;
    return stub->FindWeights(&context, request, &reply);
  });
  call(proto::LoadWeightsRequest(), [&](auto& context, const auto& request) {
    proto::LoadWeightsReply reply;
    const auto replies = stub->LoadWeights(&context, request);
    EXPECT_FALSE(replies->Read(&reply));
    return replies->Finish();
  });
  session.stream->WritesDone();
}

TEST_F(WorkerTest, Start_WithABadPortOrTime_NamesTheFlag) {
  WorkerOptions options = OptionsWith({"cpu"});
  options.metrics_port = 65536;
  EXPECT_THAT(Worker::Start(options, MakeTestDevices, logger_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--metrics-port")));
  options.metrics_port = -1;
  options.drain_seconds = -1;
  EXPECT_THAT(Worker::Start(options, MakeTestDevices, logger_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--drain-seconds")));
}

}  // namespace
}  // namespace weft
