#include "rpc_backend/protocol/grpc_tls/gated_port.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "rpc_backend/protocol/grpc_tls/grpc_tls.h"

namespace weft {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerInterceptorFactoryInterface;
using grpc::experimental::ServerRpcInfo;

// What gets here has passed CallGuard.
class CallSeen final : public Interceptor {
 public:
  CallSeen(GatedPort& port, ServerRpcInfo& info) : port_(port), info_(info) {}
  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      port_.SetKnown(info_.server_context()->peer());
    }
    methods->Proceed();
  }

 private:
  GatedPort& port_;
  ServerRpcInfo& info_;
};

class CallsSeen final : public ServerInterceptorFactoryInterface {
 public:
  explicit CallsSeen(GatedPort& port) : port_(port) {}
  Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    return std::make_unique<CallSeen>(port_, *info).release();  // gRPC owns it
  }

 private:
  GatedPort& port_;
};

}  // namespace

std::string GateNameOf(std::string_view peer) {
  absl::string_view name = AbslView(peer);
  if (absl::ConsumePrefix(&name, "ipv4:")) return std::string(name);
  if (!absl::ConsumePrefix(&name, "ipv6:")) return "";
  std::string text = absl::StrReplaceAll(name, {{"%5B", "["}, {"%5D", "]"}});
  // The network interface of a local address.
  const size_t scope = text.find('%');
  const size_t end = text.find(']');
  if (scope < end && end != std::string::npos) text.erase(scope, end - scope);
  return text;
}

absl::StatusOr<std::unique_ptr<GatedPort>> GatedPort::Listen(const HostAddress& address,
                                                             const GrpcTls* tls, const Clock& clock,
                                                             Logger& logger) {
  const GateProtocol protocol = tls == nullptr ? GateProtocol::kHttp2 : GateProtocol::kTls13;
  ASSIGN_OR_RETURN(std::unique_ptr<ConnectionGate> gate,
                   ConnectionGate::Listen(address, {}, clock, logger, protocol));
  return std::unique_ptr<GatedPort>(new GatedPort(tls, logger, std::move(gate)));
}

GatedPort::GatedPort(const GrpcTls* tls, Logger& logger, std::unique_ptr<ConnectionGate> gate)
    : tls_(tls), logger_(logger), gate_(std::move(gate)) {}

GatedPort::~GatedPort() { Stop(); }

void GatedPort::AddTo(grpc::ServerBuilder& builder) {
  using ConnectionType = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(GateLimits().handshake.count()));
  if (tls_ == nullptr) {
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        ConnectionType::FROM_FD, grpc::InsecureServerCredentials());
    return;
  }
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      ConnectionType::FROM_FD, tls_->ForServer([&logger = logger_](const std::string& why) {
        logger.Warning(absl::StrCat("refused a call: ", why));
      }));
  std::vector<std::unique_ptr<ServerInterceptorFactoryInterface>> creators;
  creators.push_back(std::make_unique<CallsSeen>(*this));
  builder.experimental().SetInterceptorCreators(std::move(creators));
}

absl::Status GatedPort::Start() {
  return gate_->Start([acceptor = acceptor_.get()](int descriptor, const std::string& first) {
    const grpc::Slice slice(first);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = descriptor;
    connection.read_buffer = grpc::ByteBuffer(&slice, 1);
    acceptor->HandleNewConnection(&connection);
  });
}

void GatedPort::Stop() { gate_->Stop(); }

void GatedPort::SetKnown(std::string_view peer) { gate_->SetKnown(GateNameOf(peer)); }

}  // namespace weft
