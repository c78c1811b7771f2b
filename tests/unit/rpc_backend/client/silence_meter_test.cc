#include "rpc_backend/client/silence_meter.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

using std::chrono::milliseconds;

TEST(SilenceMeterTest, Look_RegularLooks_SumsUntilHeard) {
  Clock::TimePoint now;
  SilenceMeter meter(now, milliseconds(1000));
  for (int i = 1; i <= 5; ++i) {
    now += milliseconds(500);
    EXPECT_EQ(meter.Look(now), milliseconds(500 * i));
  }
  meter.Heard();
  now += milliseconds(100);
  EXPECT_EQ(meter.Look(now), milliseconds(100));
}

// The process was stopped for an hour: the worker may have answered all the time.
TEST(SilenceMeterTest, Look_AfterLongSleep_CountsOneLook) {
  Clock::TimePoint now;
  SilenceMeter meter(now, milliseconds(1000));
  now += std::chrono::hours(1);
  EXPECT_EQ(meter.Look(now), milliseconds(1000));
  now += std::chrono::hours(1);
  EXPECT_EQ(meter.Look(now), milliseconds(2000));
}

}  // namespace
}  // namespace weft
