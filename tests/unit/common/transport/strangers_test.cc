#include "common/transport/strangers.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hand_clock.h"

namespace weft {
namespace {

TEST(StrangersTest, ToDrop_IsTheOldestOfThoseFromWhereMostCome) {
  EXPECT_EQ(StrangerToDrop(std::vector<std::string>{"a"}), 0u);
  EXPECT_EQ(StrangerToDrop(std::vector<std::string>{"a", "b", "c"}), 0u);
  EXPECT_EQ(StrangerToDrop(std::vector<std::string>{"a", "b", "c", "b"}), 1u);
  EXPECT_EQ(StrangerToDrop(std::vector<std::string>{"z", "a", "z", "a", "a"}), 1u);
  EXPECT_EQ(StrangerToDrop(std::vector<std::string>{"", "", "a"}), 0u);
}

TEST(StrangersTest, HostOf_WithoutThePort) {
  EXPECT_EQ(HostOf("192.0.2.1:80"), "192.0.2.1");
  EXPECT_EQ(HostOf("[2001:db8::1]:80"), "[2001:db8::1]");
  EXPECT_EQ(HostOf(""), "");
}

}  // namespace
}  // namespace weft
