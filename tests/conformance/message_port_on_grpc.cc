#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/str_cat.h"
#include "rpc_backend/protocol/grpc_transport/grpc_transport.h"
#include "tests/conformance/message_port_suite.h"

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

}  // namespace
}  // namespace weft
