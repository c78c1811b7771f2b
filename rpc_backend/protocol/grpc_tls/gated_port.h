// A port of a gRPC server behind a ConnectionGate: what strangers can make it do is bounded.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/host_address.h"
#include "common/base/log.h"
#include "common/tls/connection_gate.h"

namespace grpc {
class ServerBuilder;
namespace experimental {
class ExternalConnectionAcceptor;
}
}  // namespace grpc

namespace weft {

class GrpcTls;

class GatedPort {
 public:
  // Listens when it returns; without TLS where that is null. All outlive it. Errors: those of
  // ConnectionGate::Listen.
  static absl::StatusOr<std::unique_ptr<GatedPort>> Listen(const HostAddress& address,
                                                           const GrpcTls* tls, const Clock& clock,
                                                           Logger& logger);
  ~GatedPort();

  int32_t port() const { return gate_->port(); }
  // Makes it a port of the server, which goes before it does. With TLS, whoever made a call that
  // its certificate allows is known from then on.
  void AddTo(grpc::ServerBuilder& builder);
  // Once the server runs.
  absl::Status Start();
  // Lets nobody in any more; before the server is shut down.
  void Stop();
  // Without TLS: the other side of a call has proved who it is. `peer` as gRPC names it
  // ("ipv4:1.2.3.4:567").
  void SetKnown(std::string_view peer);

 private:
  GatedPort(const GrpcTls* tls, Logger& logger, std::unique_ptr<ConnectionGate> gate);

  const GrpcTls* const tls_;
  Logger& logger_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  const std::unique_ptr<ConnectionGate> gate_;
};

// How a ConnectionGate names that peer of gRPC; empty where it is not an internet address.
std::string GateNameOf(std::string_view peer);

}  // namespace weft
