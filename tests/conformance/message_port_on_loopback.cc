#include "common/transport/loopback/loopback_network.h"
#include "tests/conformance/message_port_suite.h"

namespace weft {
namespace {

class LoopbackWorld final : public TransportWorld {
 public:
  absl::StatusOr<std::unique_ptr<Transport>> NewTransport() override {
    return network_.NewTransport();
  }

 private:
  LoopbackNetwork network_;
};

INSTANTIATE_TEST_SUITE_P(Loopback, MessagePortSuite,
                         ::testing::Values(MessagePortCase{
                             .name = "loopback",
                             .transport = "loopback",
                             .make_world = [] { return std::make_unique<LoopbackWorld>(); }}),
                         [](const auto& chosen) { return chosen.param.name; });

}  // namespace
}  // namespace weft
