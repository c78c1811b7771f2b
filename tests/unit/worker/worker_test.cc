// A whole worker in this process, seen through its control address.
#include "worker/worker.h"

#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/worker.grpc.pb.h"
#include "rpc_backend/protocol/hello_codec.h"
#include "rpc_backend/protocol/version.h"
#include "tests/support/fake_device.h"
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

// What the worker tells a coordinator that says hello.
absl::StatusOr<WorkerHello> HelloFrom(const Worker& worker) {
  const std::unique_ptr<proto::Worker::Stub> stub = proto::Worker::NewStub(
      grpc::CreateChannel(worker.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_seconds(30, GPR_TIMESPAN));
  CoordinatorHello own;
  own.protocol = OwnHello();
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

}  // namespace
}  // namespace weft
