#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
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

}  // namespace
}  // namespace weft
