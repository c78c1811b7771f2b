#include "common/transport/own_address.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(OwnAddressTest, Towards_Loopback_IsLoopback) {
  EXPECT_EQ(*OwnAddressTowards("127.0.0.1"), "127.0.0.1");
}

TEST(OwnAddressTest, Towards_NoHost_UnavailableWithItsName) {
  const absl::Status status = OwnAddressTowards("no such host").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no such host"));
}

TEST(OwnAddressTest, OwnAddress_IsNoLoopbackOne) {
  EXPECT_THAT(OwnAddress(), Not(StartsWith("127.")));
  EXPECT_NE(OwnAddress(), "::1");
}

}  // namespace
}  // namespace weft
