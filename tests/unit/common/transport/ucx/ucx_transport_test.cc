#include "common/transport/ucx/ucx_transport.h"

#include <gtest/gtest.h>

#include "common/transport/ucx/port_address.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(UcxTransportTest, NewUcxTransport_BadOptions_Refused) {
  UcxTransportOptions options;
  options.bind_host = "0.0.0.0";
  EXPECT_THAT(NewUcxTransport(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("announce")));
  options = {};
  options.first_port = 65535;
  options.port_count = 2;
  EXPECT_THAT(NewUcxTransport(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("65535")));
  options = {};
  options.bind_host = "no such host";
  EXPECT_THAT(NewUcxTransport(options),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no such host")));
  options = {};
  options.transports = "carrier-pigeon";
  EXPECT_THAT(NewUcxTransport(options), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("UCX")));
}

TEST(UcxTransportTest, NewPort_Wildcard_AnnouncesWhatItIsTold) {
  UcxTransportOptions options;
  options.bind_host = "0.0.0.0";
  options.announce_host = "127.0.0.1";
  ASSERT_OK_AND_ASSIGN(const auto transport, NewUcxTransport(options));
  EXPECT_EQ(transport->name(), "ucx");
  ASSERT_OK_AND_ASSIGN(const auto port, transport->NewPort({.limits = {}}));
  ASSERT_OK_AND_ASSIGN(const PortAddress address, ParsePortAddress(port->address()));
  EXPECT_THAT(address.local, HasSubstr("127.0.0.1:"));
  EXPECT_THAT(address.remote, HasSubstr("127.0.0.1:"));
  EXPECT_NE(address.local, address.remote);
}

TEST(UcxTransportTest, NewPort_PortRange_OneEachThenUnavailable) {
  // A free port that the system names; two transports could race for it, so it is tried again.
  UcxTransportOptions options;
  options.transports = "tcp";
  ASSERT_OK_AND_ASSIGN(const auto finder, NewUcxTransport(options));
  ASSERT_OK_AND_ASSIGN(auto found, finder->NewPort({.limits = {}}));
  ASSERT_OK_AND_ASSIGN(const PortAddress address, ParsePortAddress(found->address()));
  found.reset();
  options.first_port = PortOf(*ParseSocketAddress(address.remote));
  ASSERT_OK_AND_ASSIGN(const auto transport, NewUcxTransport(options));
  ASSERT_OK_AND_ASSIGN(auto first, transport->NewPort({.limits = {}}));
  EXPECT_THAT(first->address(), HasSubstr(address.remote));
  EXPECT_THAT(transport->NewPort({.limits = {}}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(address.remote)));
  first.reset();
  EXPECT_OK(transport->NewPort({.limits = {}}));
}

TEST(UcxTransportTest, NewPort_BadOptions_Refused) {
  ASSERT_OK_AND_ASSIGN(const auto transport, NewUcxTransport({}));
  EXPECT_THAT(transport->NewPort({.own_number = -1, .limits = {}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
  PortOptions options;
  options.limits.inbox_bytes = 0;
  EXPECT_THAT(transport->NewPort(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit")));
}

}  // namespace
}  // namespace weft
