#include "common/transport/ucx/ucx_transport.h"
#include "tests/conformance/message_port_suite.h"

namespace weft {
namespace {

class UcxWorld final : public TransportWorld {
 public:
  explicit UcxWorld(UcxTransportOptions options) : options_(std::move(options)) {}
  absl::StatusOr<std::unique_ptr<Transport>> NewTransport() override {
    return NewUcxTransport(options_);
  }

 private:
  UcxTransportOptions options_;
};

MessagePortCase UcxCase(std::string name, std::string transport, std::string bind_host,
                        std::string ucx_tls) {
  UcxTransportOptions options;
  options.bind_host = std::move(bind_host);
  options.transports = std::move(ucx_tls);
  return {.name = std::move(name), .transport = std::move(transport), .make_world = [options] {
            return std::make_unique<UcxWorld>(options);
          }};
}

INSTANTIATE_TEST_SUITE_P(Ucx, MessagePortSuite,
                         ::testing::Values(UcxCase("memory", "posix+cma", "127.0.0.1", ""),
                                           UcxCase("tcp", "tcp", "127.0.0.1", "tcp")),
                         [](const auto& chosen) { return chosen.param.name; });

}  // namespace
}  // namespace weft
