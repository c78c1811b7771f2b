#include "common/base/host_address.h"

#include <string>

#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

void CheckText(const std::string& text, const std::string& expected) {
  const auto address = ParseHostAddress(text, 7000);
  ASSERT_OK(address) << text;
  EXPECT_EQ(address->Text(), expected);
  ASSERT_OK_AND_ASSIGN(const HostAddress again, ParseHostAddress(expected, 7000));
  EXPECT_EQ(again.Text(), expected);
}

TEST(HostAddressTest, Parse_EveryForm_Completed) {
  CheckText("10.0.0.2", "10.0.0.2:7000");
  CheckText("10.0.0.2:81", "10.0.0.2:81");
  CheckText("node-3.example.org", "node-3.example.org:7000");
  CheckText("node_3:65535", "node_3:65535");
  CheckText("::1", "[::1]:7000");
  CheckText("[::1]", "[::1]:7000");
  CheckText("[fe80::1%eth0]:9", "[fe80::1%eth0]:9");
  CheckText("2001:db8::7", "[2001:db8::7]:7000");
  CheckText("unix:/run/weft.sock", "unix:/run/weft.sock");
  CheckText("a:1", "a:1");
}

TEST(HostAddressTest, Parse_Nonsense_RefusedWithReason) {
  const auto refused = [](const std::string& text, const std::string& why) {
    EXPECT_THAT(ParseHostAddress(text, 7000),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)))
        << text;
  };
  refused("", "host is missing");
  refused(":7000", "host is missing");
  refused("a:", "port");
  refused("a:0", "port");
  refused("a:65536", "port");
  refused("a:-1", "port");
  refused("a: 1", "port");
  refused("a:1:2", "port");
  refused("[::1", "]");
  refused("[host]:1", "IPv6");
  refused("[::1]7000", "colon");
  refused("[::1]:x", "port");
  refused("a b", "character");
  refused("a//b", "character");
  refused(std::string(300, 'a'), "too long");
  refused("unix:", "socket");
  refused("unix:/" + std::string(200, 'a'), "socket");
}

TEST(HostAddressTest, Parse_LeastPortZero_MeansAny) {
  EXPECT_EQ(ParseHostAddress("127.0.0.1:0", 7000, 0)->Text(), "127.0.0.1:0");
  EXPECT_EQ(ParseHostAddress("::1", 7000, 0)->Text(), "[::1]:7000");
  EXPECT_FALSE(ParseHostAddress("127.0.0.1:-1", 7000, 0).ok());
}

}  // namespace
}  // namespace weft
