#include "common/base/refusal_log.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hand_clock.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

int Lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(RefusalLogTest, Add_Flood_FewLinesThatCountTheRest) {
  Logger logger("weft-worker", LogLevel::kInfo);
  HandClock clock;
  RefusalLog log(&logger, clock, "a data connection");
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
  RefusalLog log(nullptr, clock, "a join");
  log.Add("a", "b");
  EXPECT_EQ(log.count(), 1);
}

TEST(RefusalLogTest, SayRest_OnceThereIsRoom) {
  Logger logger("weft-worker", LogLevel::kInfo);
  HandClock clock;
  RefusalLog log(&logger, clock, "a connection");
  testing::internal::CaptureStderr();
  log.SayRest();
  for (int i = 0; i < 8; ++i) log.Add("192.0.2.7:4000", "it said nothing");
  log.SayRest();
  EXPECT_TRUE(log.has_rest());
  EXPECT_EQ(Lines(testing::internal::GetCapturedStderr()), 5);
  clock.Move(std::chrono::seconds(10));
  testing::internal::CaptureStderr();
  log.SayRest();
  log.SayRest();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "weft-worker: warning: a connection was refused 3 times more\n");
  EXPECT_FALSE(log.has_rest());
}

// After a quiet time there is room for a few again.
TEST(LineBudgetTest, Lines_ComeBack) {
  HandClock clock;
  LineBudget budget;
  int64_t left_out = 0;
  const auto taken = [&] {
    int lines = 0;
    for (int i = 0; i < 10; ++i) lines += budget.Take(clock.Now(), left_out) ? 1 : 0;
    return lines;
  };
  EXPECT_EQ(taken(), 5);
  clock.Move(std::chrono::seconds(9));
  EXPECT_EQ(taken(), 0);
  clock.Move(std::chrono::seconds(21));
  EXPECT_EQ(taken(), 3);
  clock.Move(std::chrono::hours(1));
  EXPECT_EQ(taken(), 5);
}

}  // namespace
}  // namespace weft
