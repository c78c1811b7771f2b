#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/worker.grpc.pb.h"
#include "rpc_backend/protocol/grpc_transport/grpc_transport.h"
#include "tests/conformance/message_port_suite.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

// One process: a transport with a server for it.
class ServedTransport final : public Transport {
 public:
  ServedTransport() : transport_("") {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&transport_.service());
    server_ = builder.BuildAndStart();
    transport_.SetAddress(absl::StrCat("127.0.0.1:", port));
  }
  ~ServedTransport() override {
    server_->Shutdown();
    server_->Wait();
  }

  const std::string& name() const override { return transport_.name(); }
  absl::StatusOr<std::unique_ptr<MessagePort>> NewPort(const PortOptions& options) override {
    return transport_.NewPort(options);
  }

 private:
  GrpcTransport transport_;
  std::unique_ptr<grpc::Server> server_;
};

class GrpcWorld final : public TransportWorld {
 public:
  absl::StatusOr<std::unique_ptr<Transport>> NewTransport() override {
    return std::make_unique<ServedTransport>();
  }
};

INSTANTIATE_TEST_SUITE_P(Grpc, MessagePortSuite,
                         ::testing::Values(MessagePortCase{
                             .name = "grpc",
                             .transport = "grpc",
                             .make_world = [] { return std::make_unique<GrpcWorld>(); }}),
                         [](const auto& chosen) { return chosen.param.name; });

// Somebody accepts connections and says nothing.
TEST(GrpcPort, Connect_NobodyAnswers_AbortEndsIt) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, generic, length), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, generic, &length), 0);
  GrpcTransport transport("");
  PortOptions options;
  options.own_number = 1;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MessagePort> port, transport.NewPort(options));
  absl::Status status;
  std::thread connecting([&] {
    const PortPeer silent{.number = 0, .name = "w0", .token = {}};
    status = port->Connect(silent,
                           absl::StrCat("127.0.0.1:", ntohs(address.sin_port), "/0000000000000001"),
                           SystemClock().Now() + std::chrono::hours(1));
  });
  const int accepted = accept(listener, nullptr, nullptr);
  port->Abort(absl::CancelledError("enough"));
  connecting.join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, ::testing::HasSubstr("enough")));
  close(accepted);
  close(listener);
}

// A server with port 0 that expects peer 1, and somebody with gRPC and no key.
class GrpcStranger : public ::testing::Test {
 protected:
  void SetUp() override {
    PortOptions options;
    ASSERT_OK_AND_ASSIGN(options.key, SessionKey::New());
    key_ = options.key;
    ASSERT_OK_AND_ASSIGN(port_, served_.NewPort(options));
    ASSERT_OK(port_->Expect(Peer(1)));
    const size_t slash = port_->address().find('/');
    stub_ = proto::WorkerData::NewStub(
        grpc::CreateChannel(port_->address().substr(0, slash), grpc::InsecureChannelCredentials()));
    ASSERT_TRUE(absl::SimpleHexAtoi(port_->address().substr(slash + 1), &number_));
  }

  static PortPeer Peer(int32_t number) {
    PortPeer peer{.number = number, .name = absl::StrCat("w", number), .token = {}};
    peer.token.fill(0x5a);
    return peer;
  }

  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<proto::DataMessage, proto::DataMessage>> stream;
  };
  std::unique_ptr<Call> Open() {
    auto call = std::make_unique<Call>();
    call->stream = stub_->Messages(&call->context);
    return call;
  }

  proto::DataMessage Hello() const {
    proto::DataMessage hello;
    hello.set_from(1);
    hello.set_port(number_);
    hello.set_nonce(std::string(32, 'n'));
    hello.set_port_address(std::string(32, 'a'));
    return hello;
  }

  // Says these, one by one, each after an answer; what the stream ends with.
  std::string Say(const std::vector<proto::DataMessage>& frames) {
    const auto call = Open();
    proto::DataMessage answer;
    for (const proto::DataMessage& frame : frames) {
      (void)call->stream->Write(frame);
      if (!call->stream->Read(&answer)) break;
    }
    return call->stream->Finish().error_message();
  }

  // A flood that is still coming may push a peer out as well; it comes again.
  void ExpectHealthy() {
    PortOptions options;
    options.own_number = 1;
    options.key = key_;
    ServedTransport other;
    const Clock::TimePoint late = SystemClock().Now() + std::chrono::seconds(60);
    std::unique_ptr<MessagePort> honest;
    absl::Status connected;
    do {
      ASSERT_OK_AND_ASSIGN(honest, other.NewPort(options));
      connected = honest->Connect(Peer(0), port_->address(), late);
    } while (absl::IsUnavailable(connected) && SystemClock().Now() < late);
    ASSERT_OK(connected);
    ASSERT_OK(SendBytes(*honest, 0, {}, Payload(100)));
    EXPECT_OK(port_->Receive({.peer = 1}, late));
    EXPECT_OK(port_->failure());
  }

  ServedTransport served_;
  SessionKey key_;
  std::unique_ptr<MessagePort> port_;
  int64_t number_ = 0;
  std::unique_ptr<proto::WorkerData::Stub> stub_;
};

TEST_F(GrpcStranger, WithoutProof_RefusedWithReason) {
  proto::DataMessage data;
  data.set_payload("bytes");
  proto::DataMessage proof;
  proof.set_proof(std::string(32, 'p'));
  EXPECT_THAT(Say({data}), ::testing::HasSubstr("no such port"));
  data.set_port(number_);
  EXPECT_THAT(Say({data}), ::testing::HasSubstr("no such connection is expected"));
  proto::DataMessage half = Hello();
  half.set_nonce("short");
  EXPECT_THAT(Say({half}), ::testing::HasSubstr("no such connection is expected"));
  EXPECT_THAT(Say({Hello(), proof}),
              ::testing::HasSubstr("the proof of the session's key is wrong"));
  EXPECT_THAT(Say({Hello(), data}),
              ::testing::HasSubstr("the proof of the session's key is wrong"));
  EXPECT_EQ(port_->traffic()[0].Total().messages_received, 0);
  ExpectHealthy();
}

TEST_F(GrpcStranger, Silent_EndedInTime) {
  const Clock::TimePoint start = SystemClock().Now();
  const auto silent = Open();
  const auto greeted = Open();
  ASSERT_TRUE(greeted->stream->Write(Hello()));
  proto::DataMessage answer;
  ASSERT_TRUE(greeted->stream->Read(&answer));
  for (const auto* call : {&silent, &greeted}) {
    EXPECT_FALSE((*call)->stream->Read(&answer));
    EXPECT_FALSE((*call)->stream->Finish().ok());
  }
  EXPECT_GE(SecondsSince(SystemClock(), start), 4.9);
  EXPECT_LT(SecondsSince(SystemClock(), start), 30);
  ExpectHealthy();
}

TEST_F(GrpcStranger, Many_TheOldestGo_HonestPeerConnects) {
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 500; ++i) {
    calls.push_back(Open());
    if (i % 2 == 0) (void)calls.back()->stream->Write(Hello());
  }
  ExpectHealthy();
  proto::DataMessage answer;
  while (calls[0]->stream->Read(&answer)) {
  }
  EXPECT_EQ(calls[0]->stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  for (const auto& call : calls) call->context.TryCancel();
}

}  // namespace
}  // namespace weft
