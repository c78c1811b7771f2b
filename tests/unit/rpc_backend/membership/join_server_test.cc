// Both sides of joining over real connections, and what strangers get.
#include "rpc_backend/membership/join_server.h"

#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/random.h"
#include "common/base/unix_time.h"
#include "common/tls/connection_gate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/membership.grpc.pb.h"
#include "rpc_backend/membership/join_client.h"
#include "rpc_backend/protocol/grpc_tls/grpc_process.h"
#include "rpc_backend/protocol/grpc_tls/grpc_tls.h"
#include "tests/support/generic_call.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_certificates.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kToken[] = "the-token-of-both-sides";

JoinClaim SampleClaim() {
  return {.name = "beta",
          .address = "127.0.0.1:7000",
          .incarnation = "0123456789abcdef",
          .host_identity = "machine",
          .leaving = false};
}

class JoinServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { PrepareGrpcProcess(); }

  std::unique_ptr<JoinServer> StartServer(const GrpcTls* tls = nullptr) {
    auto token = JoinToken::Open(folder_.Write("token", kToken));
    EXPECT_THAT(token, IsOk());
    JoinServerOptions options;
    options.listen = {.host = "127.0.0.1", .port = 0, .socket_path = ""};
    options.tls = tls;
    options.logger = &logger_;
    auto server = JoinServer::Start(
        options, *std::move(token),
        [this](const JoinClaim& claim) -> absl::StatusOr<milliseconds> {
          MutexLock lock(mutex_);
          claims_.push_back(claim);
          if (claim.name == "unwanted") return absl::FailedPreconditionError("not you");
          return claim.leaving ? milliseconds(0) : milliseconds(1234);
        },
        clock_);
    EXPECT_THAT(server, IsOk());
    return *std::move(server);
  }
  std::unique_ptr<GrpcTls> Tls(TlsRole role, const std::vector<std::string>& hosts,
                               const TestAuthority& authority) {
    auto tls = GrpcTls::Open(
        authority.Write("tls" + std::to_string(++folders_), authority.Make(role, hosts)), role);
    EXPECT_THAT(tls, IsOk());
    return *std::move(tls);
  }
  static std::unique_ptr<JoinClient> NewClient(const std::string& address,
                                               const GrpcTls* tls = nullptr) {
    JoinClientOptions options;
    options.coordinator = *ParseHostAddress(address, 0);
    options.security.tls = tls;
    auto client = JoinClient::Create(options);
    EXPECT_THAT(client, IsOk());
    return *std::move(client);
  }
  static std::unique_ptr<proto::Membership::Stub> NewStub(const std::string& address) {
    return proto::Membership::NewStub(
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  }
  size_t claims() {
    MutexLock lock(mutex_);
    return claims_.size();
  }

  const TemporaryFolder folder_;
  const SystemClock clock_;
  Logger logger_{"join_server_test", LogLevel::kWarning};
  const TestAuthority authority_{UnixSeconds()};
  int folders_ = 0;
  Mutex mutex_;
  std::vector<JoinClaim> claims_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(JoinServerTest, Join_IsAdmittedWithItsLease_AndLeaves) {
  const auto server = StartServer();
  const auto client = NewClient(server->address());
  const SessionKey key = JoinToken::KeyOf(kToken);
  ASSERT_OK_AND_ASSIGN(const milliseconds lease, client->Join(key, SampleClaim()));
  EXPECT_EQ(lease, milliseconds(1234));
  JoinClaim farewell = SampleClaim();
  farewell.leaving = true;
  ASSERT_OK_AND_ASSIGN(const milliseconds none, client->Join(key, farewell));
  EXPECT_EQ(none, milliseconds(0));
  MutexLock lock(mutex_);
  ASSERT_EQ(claims_.size(), 2);
  EXPECT_EQ(claims_[0], SampleClaim());
  EXPECT_EQ(claims_[1], farewell);
}

TEST_F(JoinServerTest, Refusal_ReachesTheWorker_AndTheLog) {
  const auto server = StartServer();
  JoinClaim claim = SampleClaim();
  claim.name = "unwanted";
  testing::internal::CaptureStderr();
  EXPECT_THAT(NewClient(server->address())->Join(JoinToken::KeyOf(kToken), claim),
              StatusIs(absl::StatusCode::kFailedPrecondition, "not you"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("a join from"), HasSubstr("127.0.0.1"), HasSubstr("not you")));
}

TEST_F(JoinServerTest, AnotherToken_IsRefusedOnBothSides) {
  const auto server = StartServer();
  testing::internal::CaptureStderr();
  EXPECT_THAT(NewClient(server->address())->Join(JoinToken::KeyOf("another"), SampleClaim()),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("another token")));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("another token"));
  EXPECT_EQ(claims(), 0);
}

// Somebody who saw a whole join sends it again.
TEST_F(JoinServerTest, CapturedJoin_SentAgain_IsRefusedOnBothSides) {
  const auto server = StartServer();
  const auto stub = NewStub(server->address());
  proto::JoinRequest captured;
  {
    grpc::ClientContext context;
    proto::ChallengeReply challenge;
    ASSERT_TRUE(stub->Challenge(&context, {}, &challenge).ok());
    JoinAttempt attempt;
    attempt.claim = SampleClaim();
    attempt.nonce = *NewPeerNonce();
    std::copy(challenge.challenge().begin(), challenge.challenge().end(),
              attempt.challenge.begin());
    EncodeJoin(attempt, *ProveJoin(JoinToken::KeyOf(kToken), PeerSide::kConnector, attempt),
               captured);
  }
  proto::JoinReply reply;
  grpc::ClientContext first;
  ASSERT_TRUE(stub->Join(&first, captured, &reply).ok());
  testing::internal::CaptureStderr();
  grpc::ClientContext second;
  const grpc::Status again = NewStub(server->address())->Join(&second, captured, &reply);
  EXPECT_EQ(again.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(again.error_message(), HasSubstr("replayed"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("a join from"), HasSubstr("replayed")));
  EXPECT_EQ(claims(), 1);
}

// More at a time than a gate has places for those that nobody knows: machines behind one address.
TEST_F(JoinServerTest, ManyWorkers_OfOneAddress_AllJoin) {
  const auto server = StartServer();
  const SessionKey key = JoinToken::KeyOf(kToken);
  std::vector<std::unique_ptr<JoinClient>> members;  // who keep their connections
  for (size_t i = 0; i < 2 * GateLimits().connections_per_host; ++i) {
    members.push_back(NewClient(server->address()));
    ASSERT_OK(members.back()->Join(key, SampleClaim()).status()) << i;
  }
}

// A coordinator that lets everybody join, without the token.
class Impostor final : public proto::Membership::Service {
 public:
  grpc::Status Challenge(grpc::ServerContext*, const proto::ChallengeRequest*,
                         proto::ChallengeReply* reply) override {
    reply->set_challenge(std::string(32, 'c'));
    return grpc::Status::OK;
  }
  grpc::Status Join(grpc::ServerContext*, const proto::JoinRequest* request,
                    proto::JoinReply* reply) override {
    reply->set_proof(request->proof());  // what it has
    reply->set_lease_ms(1000);
    return grpc::Status::OK;
  }
};

TEST_F(JoinServerTest, CoordinatorWithoutTheToken_IsNotBelieved) {
  Impostor impostor;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&impostor);
  const auto server = builder.BuildAndStart();
  EXPECT_THAT(
      NewClient("127.0.0.1:" + std::to_string(port))->Join(JoinToken::KeyOf(kToken), SampleClaim()),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("without a proof")));
}

TEST_F(JoinServerTest, CompressedMessage_IsRefused) {
  const auto server = StartServer();
  const auto stub = NewStub(server->address());
  proto::JoinRequest request;
  EncodeJoin({.claim = SampleClaim()}, {}, request);
  request.set_name(std::string(200, 'x'));  // worth compressing
  for (const bool compressed : {true, false}) {
    grpc::ClientContext context;
    if (compressed) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    proto::JoinReply reply;
    const grpc::Status status = stub->Join(&context, request, &reply);
    // Otherwise it is read, and answers no challenge.
    EXPECT_EQ(status.error_code(),
              compressed ? grpc::StatusCode::INTERNAL : grpc::StatusCode::FAILED_PRECONDITION);
  }
}

TEST_F(JoinServerTest, HostileBytes_AreRefused_AndItServesOn) {
  const auto server = StartServer();
  Random random(TestSeed(7));
  const auto channel = grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials());
  proto::JoinRequest sample;
  EncodeJoin({.claim = SampleClaim()}, {}, sample);
  const std::string good = sample.SerializeAsString();
  for (int i = 0; i < 200; ++i) {
    std::string bytes = good;
    for (int64_t changes = random.Between(1, 8); changes > 0; --changes) {
      bytes[random.Between(0, static_cast<int64_t>(bytes.size()) - 1)] =
          static_cast<char>(random.Between(0, 255));
    }
    if (i == 0) bytes = std::string(1 << 20, 'x');
    const grpc::Status status = CallByPath(channel, "/weft.proto.Membership/Join", bytes);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  }
  EXPECT_EQ(claims(), 0);
  EXPECT_OK(NewClient(server->address())->Join(JoinToken::KeyOf(kToken), SampleClaim()).status());
}

TEST_F(JoinServerTest, Tls_BothSidesWithTheirRoles) {
  const auto coordinator = Tls(TlsRole::kCoordinator, {"127.0.0.1"}, authority_);
  const auto worker = Tls(TlsRole::kWorker, {"beta"}, authority_);
  const auto server = StartServer(coordinator.get());
  const SessionKey key = JoinToken::KeyOf(kToken);
  EXPECT_OK(NewClient(server->address(), worker.get())->Join(key, SampleClaim()).status());
  // Plaintext, and an authority of its own.
  EXPECT_THAT(NewClient(server->address())->Join(key, SampleClaim()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("speaks TLS")));
  const TestAuthority other(UnixSeconds());
  const auto stranger = Tls(TlsRole::kWorker, {"beta"}, other);
  EXPECT_THAT(NewClient(server->address(), stranger.get())->Join(key, SampleClaim()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not from the authority")));
  EXPECT_EQ(claims(), 1);
}

TEST_F(JoinServerTest, Tls_WorkersCertificate_MakesNoCoordinator) {
  const auto worker = Tls(TlsRole::kWorker, {"127.0.0.1"}, authority_);
  const auto server = StartServer(worker.get());
  EXPECT_THAT(
      NewClient(server->address(), worker.get())->Join(JoinToken::KeyOf(kToken), SampleClaim()),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("is not a coordinator's")));
  const auto misnamed = Tls(TlsRole::kCoordinator, {"elsewhere"}, authority_);
  const auto second = StartServer(misnamed.get());
  EXPECT_THAT(
      NewClient(second->address(), worker.get())->Join(JoinToken::KeyOf(kToken), SampleClaim()),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("does not name 127.0.0.1"), HasSubstr("weft certs coordinator"))));
}

TEST_F(JoinServerTest, Plaintext_ToAnotherMachine_IsRefusedWithoutACall) {
  JoinClientOptions options;
  options.coordinator = {.host = "198.51.100.7", .port = 7070, .socket_path = ""};
  EXPECT_THAT(JoinClient::Create(options),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--tls DIR")));
}

// Takes connections and says nothing.
class ListeningSocket {
 public:
  ListeningSocket() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place;
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<sockaddr*>(&place), size), 0);
    EXPECT_EQ(listen(descriptor_, 4), 0);
    EXPECT_EQ(getsockname(descriptor_, reinterpret_cast<sockaddr*>(&place), &size), 0);
    port_ = ntohs(place.sin_port);
  }
  ~ListeningSocket() { close(descriptor_); }
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  const int descriptor_;
  int port_ = 0;
};

TEST_F(JoinServerTest, Cancel_EndsAJoinThatWaits) {
  // Nobody answers there: it listens, and says nothing.
  const ListeningSocket mute;
  const auto client = NewClient(mute.address());
  std::thread canceller([&] { client->Cancel(); });
  EXPECT_THAT(client->Join(JoinToken::KeyOf(kToken), SampleClaim()),
              StatusIs(absl::StatusCode::kCancelled));
  canceller.join();
}

}  // namespace
}  // namespace weft
