#include "tests/conformance/message_port_suite.h"

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "tests/support/status_matchers.h"

namespace weft {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MessagePortSuite);

void MessagePortSuite::SetUp() { world_ = GetParam().make_world(); }

PortOptions MessagePortSuite::Options(int32_t own_number, const PortLimits& limits) {
  return {.session = kTestSession, .epoch = kTestEpoch, .own_number = own_number, .limits = limits};
}

PortPeer MessagePortSuite::Peer(int32_t number) {
  PortPeer peer{.number = number, .name = absl::StrCat("w", number), .token = {}};
  peer.token.fill(0x5a);
  return peer;
}

std::unique_ptr<MessagePort> MessagePortSuite::NewPort(const PortOptions& options) {
  absl::StatusOr<std::unique_ptr<Transport>> transport = world_->NewTransport();
  EXPECT_OK(transport);
  if (!transport.ok()) std::abort();
  transports_.push_back(*std::move(transport));
  absl::StatusOr<std::unique_ptr<MessagePort>> port = transports_.back()->NewPort(options);
  EXPECT_OK(port);
  if (!port.ok()) std::abort();
  return *std::move(port);
}

absl::Status MessagePortSuite::Connect(MessagePort& port, int32_t number, MessagePort& other,
                                       int32_t other_number) {
  if (absl::Status status = other.Expect(Peer(number)); !status.ok()) return status;
  const ScopedDriver driver(other);
  return port.Connect(Peer(other_number), other.address(), Late());
}

std::vector<std::unique_ptr<MessagePort>> MessagePortSuite::NewPorts(int count,
                                                                     const PortLimits& limits) {
  std::vector<std::unique_ptr<MessagePort>> ports;
  for (int32_t number = 0; number < count; ++number) {
    ports.push_back(NewPort(Options(number, limits)));
    for (int32_t other = 0; other < number; ++other) {
      EXPECT_OK(Connect(*ports[number], number, *ports[other], other));
    }
  }
  for (const auto& port : ports) EXPECT_OK(port->AwaitPeers(Late()));
  return ports;
}

Payload PatternPayload(uint64_t seed, int64_t bytes) {
  Random random(seed);
  Payload payload(bytes);
  for (uint8_t& byte : payload) byte = static_cast<uint8_t>(random.Next());
  return payload;
}

ScopedDriver::ScopedDriver(MessagePort& port)
    : port_(port), thread_([this] {
        // Nothing has these kinds, so that only `stop_` ends it, or the end of the port's use.
        (void)port_.Receive({.kinds = 0}, SystemClock().Now() + std::chrono::seconds(60), &stop_);
      }) {}

ScopedDriver::~ScopedDriver() {
  stop_ = true;
  port_.Wake();
}

}  // namespace weft
