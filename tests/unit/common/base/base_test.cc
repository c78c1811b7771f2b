// The small parts of common/base: assertions, clock, instruction sets, log, memory size, mutex,
// random numbers, status macros.
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/cpu_features.h"
#include "common/base/log.h"
#include "common/base/machine_memory.h"
#include "common/base/mutex.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(CheckDeathTest, FalseCondition_AbortsNamingPlaceAndCondition) {
  WEFT_CHECK(1 + 1 == 2);
  EXPECT_DEATH(WEFT_CHECK(1 + 1 == 3), "base_test.cc:[0-9]+.*1 \\+ 1 == 3");
}

TEST(Clock, SystemClock_DoesNotRunBackwards) {
  const SystemClock clock;
  const Clock::TimePoint start = clock.Now();
  EXPECT_GE(clock.Now(), start);
  EXPECT_GE(SecondsSince(clock, start), 0.0);
}

TEST(CpuFeatures, Names_ParseBackOrSayWhyNot) {
  EXPECT_TRUE(IsSupported(InstructionSet::kScalar));
  EXPECT_TRUE(IsSupported(BestInstructionSet()));
  for (const InstructionSet isa : {InstructionSet::kScalar, InstructionSet::kAvx2,
                                   InstructionSet::kAvx512, InstructionSet::kNeon}) {
    const auto parsed = ParseInstructionSet(InstructionSetName(isa));
    if (IsSupported(isa)) {
      ASSERT_OK(parsed);
      EXPECT_EQ(*parsed, isa);
    } else {
      EXPECT_THAT(parsed, StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr(std::string(InstructionSetName(isa)))));
    }
  }
  EXPECT_THAT(ParseInstructionSet("mmx"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'mmx'; known are scalar")));
}

TEST(MachineMemory, IsThatOfAMachine) {
  EXPECT_GT(MachineMemoryBytes(), int64_t{64} << 20);
  EXPECT_EQ(MachineMemoryBytes() % 4096, 0);
}

TEST(Logger, Lines_CarryProgramAndLevelAndNoNewline) {
  Logger logger("weft", LogLevel::kInfo);
  testing::internal::CaptureStderr();
  logger.Debug("unseen");
  logger.Info("one\ntwo");
  logger.Warning("three");
  logger.Error("four");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "weft: one two\nweft: warning: three\nweft: error: four\n");
}

TEST(Mutex, Increments_AreNotLost) {
  Mutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) {
        MutexLock lock(mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4000);
}

TEST(CondVar, Notification_WakesAndDeadlineEndsTheWait) {
  Mutex mutex;
  CondVar condition;
  bool ready = false;
  std::thread waker([&] {
    MutexLock lock(mutex);
    ready = true;
    condition.NotifyAll();
  });
  {
    MutexLock lock(mutex);
    while (!ready) condition.Wait(mutex);
    EXPECT_FALSE(condition.WaitUntil(mutex, SystemClock().Now()));
  }
  waker.join();
}

TEST(Random, Sequence_IsThatOfSplitMix64) {
  Random random(1234567);
  for (const uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                  4593380528125082431u, 16408922859458223821u}) {
    EXPECT_EQ(random.Next(), expected);
  }
}

TEST(Random, Distributions_HaveTheirRangeAndMoments) {
  Random random(1);
  constexpr int kCount = 100000;
  double sum = 0;
  double squares = 0;
  bool low = false;
  bool high = false;
  for (int i = 0; i < kCount; ++i) {
    const double uniform = random.Uniform();
    ASSERT_GE(uniform, 0.0);
    ASSERT_LT(uniform, 1.0);
    const int64_t between = random.Between(-3, 3);
    ASSERT_GE(between, -3);
    ASSERT_LE(between, 3);
    low |= between == -3;
    high |= between == 3;
    const double normal = random.Normal();
    sum += normal;
    squares += normal * normal;
  }
  EXPECT_TRUE(low && high);
  // Five standard errors of the mean and of the variance.
  EXPECT_LT(std::abs(sum / kCount), 5 / std::sqrt(kCount));
  EXPECT_LT(std::abs(squares / kCount - 1), 5 * std::sqrt(2.0 / kCount));
}

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return value / 2;
}

absl::StatusOr<int> Quarter(int value) {
  ASSIGN_OR_RETURN(const int half, Half(value));
  int quarter = 0;
  ASSIGN_OR_RETURN(quarter, Half(half));
  return quarter;
}

absl::Status NeedsQuarter(int value) {
  RETURN_IF_ERROR(Quarter(value).status());
  return absl::OkStatus();
}

TEST(StatusMacros, Errors_ReturnEarlyAndValuesPass) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_THAT(Quarter(3), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  EXPECT_OK(NeedsQuarter(4));
  EXPECT_THAT(NeedsQuarter(2), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
}

}  // namespace
}  // namespace weft
