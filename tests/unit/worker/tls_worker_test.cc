// What a worker's certificate opens at another worker, and what it does not.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "common/base/unix_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc_backend/protocol/grpc_calls.h"
#include "rpc_backend/protocol/grpc_tls/call_policy.h"
#include "rpc_backend/protocol/grpc_tls/gated_port.h"
#include "rpc_backend/protocol/grpc_tls/grpc_process.h"
#include "rpc_backend/protocol/grpc_tls/grpc_tls.h"
#include "tests/support/generic_call.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_certificates.h"
#include "worker/worker.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TlsWorkerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { PrepareGrpcProcess(); }

  void SetUp() override {
    WorkerOptions options;
    options.listen = "127.0.0.1:0";
    options.threads = 1;
    options.transport = "tls";
    options.self_test = false;
    options.tls = authority_.Write("w0", authority_.Make(TlsRole::kWorker, {"127.0.0.1"}));
    auto worker = Worker::Start(options, nullptr, logger_);
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
  }

  // The status of a call with an empty message.
  grpc::Status Call(TlsRole role, const std::string& path) {
    const auto tls =
        GrpcTls::Open(authority_.Write("caller", authority_.Make(role, {"caller"})), role);
    EXPECT_TRUE(tls.ok()) << tls.status();
    return Call(**tls, path);
  }
  grpc::Status Call(const GrpcTls& tls, const std::string& path) {
    return CallByPath(
        grpc::CreateCustomChannel(worker_->address(), tls.ForWorkers(), OwnConnection()), path, "");
  }

  Logger logger_{"tls_worker_test", LogLevel::kError};
  const TestAuthority authority_{UnixSeconds()};
  std::unique_ptr<Worker> worker_;
};

TEST_F(TlsWorkerTest, Coordinator_MayCallEverything) {
  EXPECT_TRUE(Call(TlsRole::kCoordinator, "/grpc.health.v1.Health/Check").ok());
  // It is heard, and has no version.
  const grpc::Status hello = Call(TlsRole::kCoordinator, "/weft.proto.Worker/Hello");
  EXPECT_NE(hello.error_code(), grpc::StatusCode::PERMISSION_DENIED) << hello.error_message();
  EXPECT_NE(hello.error_code(), grpc::StatusCode::UNAVAILABLE) << hello.error_message();
}

TEST_F(TlsWorkerTest, Worker_MayAskForHealthOnly) {
  EXPECT_TRUE(Call(TlsRole::kWorker, "/grpc.health.v1.Health/Check").ok());
  for (const char* path : {"/weft.proto.Worker/Hello", "/weft.proto.Worker/Session",
                           "/weft.proto.Worker/LoadWeights", "/weft.proto.Other/Thing"}) {
    const grpc::Status status = Call(TlsRole::kWorker, path);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << path;
    EXPECT_THAT(status.error_message(), AllOf(HasSubstr("'caller'"), HasSubstr("role worker"),
                                              HasSubstr(path), HasSubstr("coordinator")));
  }
}

// More in a moment than a gate has places for those that nobody knows.
TEST_F(TlsWorkerTest, KnownCallers_TakeNoPlaceAtTheGate) {
  const auto tls =
      GrpcTls::Open(authority_.Write("caller", authority_.Make(TlsRole::kCoordinator, {"caller"})),
                    TlsRole::kCoordinator);
  ASSERT_THAT(tls, IsOk());
  for (size_t i = 0; i < 2 * GateLimits().connections_per_host; ++i) {
    const grpc::Status status = Call(**tls, "/grpc.health.v1.Health/Check");
    ASSERT_TRUE(status.ok()) << i << ": " << status.error_message();
  }
}

TEST(GatedPortTest, Peers_HaveTheNamesOfTheGate) {
  EXPECT_EQ(GateNameOf("ipv4:10.1.2.3:567"), "10.1.2.3:567");
  EXPECT_EQ(GateNameOf("ipv6:%5B2001:db8::1%5D:567"), "[2001:db8::1]:567");
  EXPECT_EQ(GateNameOf("ipv6:[2001:db8::1]:567"), "[2001:db8::1]:567");
  EXPECT_EQ(GateNameOf("ipv6:%5Bfe80::1%25eth0%5D:567"), "[fe80::1]:567");
  for (const char* other : {"", "unix:", "ipv4", "ipv6:", "ipv6:%", "unix:/run/%5B"}) {
    EXPECT_EQ(GateNameOf(other).find(':'), std::string::npos) << other;
  }
}

TEST(CallPolicyTest, NoRole_MayCallNothing) {
  for (const char* path : {"/weft.proto.WorkerData/Messages", "/grpc.health.v1.Health/Check", ""}) {
    EXPECT_THAT(CheckCall(path, TlsRole::kBoth, "x"),
                StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("role both")));
    EXPECT_THAT(CheckCall(path, TlsRole::kNone, "x"),
                StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("role none")));
  }
}

TEST(CallPolicyTest, Paths_AreComparedWhole) {
  EXPECT_OK(CheckCall("/weft.proto.WorkerData/Messages", TlsRole::kWorker, "x"));
  for (const char* path : {"/weft.proto.WorkerData/MessagesX", "/weft.proto.WorkerData/",
                           "weft.proto.WorkerData/Messages", "//weft.proto.WorkerData/Messages"}) {
    EXPECT_THAT(CheckCall(path, TlsRole::kWorker, "x"),
                StatusIs(absl::StatusCode::kPermissionDenied))
        << path;
  }
}

}  // namespace
}  // namespace weft
