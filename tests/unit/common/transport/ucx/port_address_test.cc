#include "common/transport/ucx/port_address.h"

#include <gtest/gtest.h>

#include "common/transport/host_identity.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(PortAddressTest, Text_RoundTrip_SameFields) {
  const PortAddress address{
      .host_identity = "a=b:c", .local = "127.0.0.1:40001", .remote = "[2001:db8::1]:65535"};
  const std::string text = PortAddressText(address);
  EXPECT_EQ(text, "ucx1 host=a=b:c local=127.0.0.1:40001 remote=[2001:db8::1]:65535");
  ASSERT_OK_AND_ASSIGN(const PortAddress parsed, ParsePortAddress(text));
  EXPECT_EQ(parsed.host_identity, address.host_identity);
  EXPECT_EQ(parsed.local, address.local);
  EXPECT_EQ(parsed.remote, address.remote);
}

TEST(PortAddressTest, Parse_Malformed_InvalidArgument) {
  for (const std::string text :
       {"", "ucx2 host=x local=127.0.0.1:1", "ucx1", "ucx1 host=x", "ucx1 local=127.0.0.1:1",
        "ucx1 host=x local=127.0.0.1", "ucx1 host=x local=127.0.0.1:65536",
        "ucx1 host=x local=example.com:1", "ucx1 host=x local=", "ucx1 host= local=127.0.0.1:1",
        "ucx1 host=x local=127.0.0.1:1 local=127.0.0.1:2", "ucx1 host=x  local=127.0.0.1:1",
        "ucx1 host=x local=127.0.0.1:1 other=1", "ucx1 host=x local=127.0.0.1:-1",
        "ucx1 host=x local=:1", "ucx1 host=x local=[]:1"}) {
    EXPECT_THAT(ParsePortAddress(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("UCX port")))
        << text;
  }
  EXPECT_FALSE(ParsePortAddress(std::string(100000, ' ')).ok());
}

TEST(PortAddressTest, SocketAddress_Kinds_Recognised) {
  ASSERT_OK_AND_ASSIGN(SocketAddress v4, ParseSocketAddress("127.0.0.2:80"));
  EXPECT_TRUE(IsLoopback(v4));
  EXPECT_FALSE(IsWildcard(v4));
  EXPECT_EQ(InterfaceOf(v4), "lo");
  EXPECT_EQ(PortOf(v4), 80);
  SetPort(v4, 81);
  EXPECT_EQ(SocketAddressText(v4), "127.0.0.2:81");
  ASSERT_OK_AND_ASSIGN(const SocketAddress v6, ParseSocketAddress("[::1]:80"));
  EXPECT_TRUE(IsLoopback(v6));
  EXPECT_EQ(SocketAddressText(v6), "[::1]:80");
  ASSERT_OK_AND_ASSIGN(const SocketAddress any, ParseSocketAddress("[::]:0"));
  EXPECT_TRUE(IsWildcard(any));
  EXPECT_FALSE(IsLoopback(any));
  ASSERT_OK_AND_ASSIGN(const SocketAddress elsewhere, ParseSocketAddress("192.0.2.77:1"));
  EXPECT_EQ(InterfaceOf(elsewhere), "");
}

TEST(PortAddressTest, ResolveHost_Unknown_UnavailableNamesIt) {
  EXPECT_OK(ResolveHost("localhost", 1));
  EXPECT_THAT(ResolveHost("no such host", 1),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("'no such host'")));
}

TEST(HostIdentityTest, HostIdentity_OneProcess_SameWithoutSpaces) {
  const std::string identity = HostIdentity();
  EXPECT_EQ(identity, HostIdentity());
  EXPECT_EQ(identity.find_first_of(" \n"), std::string::npos);
  EXPECT_GT(identity.size(), 10u);
}

}  // namespace
}  // namespace weft
