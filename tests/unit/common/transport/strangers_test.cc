#include "common/transport/strangers.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hand_clock.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

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

int Lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(RefusalLogTest, Add_Flood_FewLinesThatCountTheRest) {
  Logger logger("weft-worker", LogLevel::kInfo);
  HandClock clock;
  RefusalLog log(&logger, clock);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5000; ++i) log.Add("192.0.2.7:4000", "the proof is wrong");
  const std::string first = testing::internal::GetCapturedStderr();
  EXPECT_EQ(Lines(first), 5);
  EXPECT_THAT(first, HasSubstr("192.0.2.7:4000 was refused: the proof is wrong"));
  clock.Move(std::chrono::seconds(10));
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5000; ++i) log.Add("", "no hello");
  const std::string later = testing::internal::GetCapturedStderr();
  EXPECT_EQ(Lines(later), 1);
  EXPECT_THAT(later, HasSubstr("somewhere was refused: no hello (and 4995 others before it)"));
  EXPECT_EQ(log.count(), 10000);
}

TEST(RefusalLogTest, Add_NoLogger_Counted) {
  const HandClock clock;
  RefusalLog log(nullptr, clock);
  log.Add("a", "b");
  EXPECT_EQ(log.count(), 1);
}

}  // namespace
}  // namespace weft
