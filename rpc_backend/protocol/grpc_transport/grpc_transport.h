// Message ports over gRPC streams: what moves data where UCX is absent or refused (decision 33).
// One stream per pair of ports, opened by the side that connects.
//
// Small messages go as they are. Large ones are announced and fetched when the receiver has room,
// in pieces, so that small ones overtake them. Ports wait on conditions; gRPC's own threads read
// and write, and never wait for anybody.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/transport/transport.h"
#include "rpc_backend/protocol/grpc_tls/wire_security.h"

namespace grpc {
class Service;
}

namespace weft {

class GrpcPortRegistry;

// Any thread may call.
class GrpcTransport final : public Transport {
 public:
  // Its ports can connect, and be connected to where service() is registered with a server.
  // `address` is where others reach that server: "10.0.0.2:7000", "[fe80::1]:7000" or "unix:/path";
  // empty: its ports only connect. They connect to other machines as `security` says. `logger`
  // hears of streams that are refused; outlives the service; may be null.
  explicit GrpcTransport(std::string address, const WireSecurity& security = {},
                         Logger* logger = nullptr);
  ~GrpcTransport() override;

  const std::string& name() const override { return name_; }
  absl::StatusOr<std::unique_ptr<MessagePort>> NewPort(const PortOptions& options) override;

  // For ServerBuilder::RegisterService. Shut the server down before this object goes.
  grpc::Service& service();
  // For a server whose port is known only once it listens; before the first NewPort.
  void SetAddress(std::string address) { address_ = std::move(address); }

 private:
  const std::string name_ = "grpc";
  const WireSecurity security_;
  std::string address_;
  // Shared with the ports, which may outlive the transport.
  std::shared_ptr<GrpcPortRegistry> registry_;
  std::unique_ptr<grpc::Service> service_;
};

}  // namespace weft
