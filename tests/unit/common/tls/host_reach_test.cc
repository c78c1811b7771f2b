#include "common/tls/host_reach.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace weft {
namespace {

TEST(HostReachTest, Addresses_AreLoopbackOrNot) {
  for (const char* host : {"127.0.0.1", "127.0.0.2", "127.255.255.254", "::1", "localhost"}) {
    EXPECT_EQ(IsLoopbackHost(host).value_or(false), true) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "10.0.0.2", "128.0.0.1", "fe80::1"}) {
    EXPECT_EQ(IsLoopbackHost(host).value_or(true), false) << host;
  }
}

}  // namespace
}  // namespace weft
