#include "coordinator/serving/generation_stream.h"

#include <thread>

#include "common/base/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using testing::HasSubstr;

constexpr auto kForever = Clock::TimePoint::max();

TEST(GenerationStream, Pieces_AreJoinedUntilTaken) {
  GenerationStream stream;
  stream.Push({"one ", {}});
  stream.Push({"two", {}});
  auto piece = stream.Next(kForever);
  ASSERT_OK(piece.status());
  EXPECT_EQ((*piece)->text, "one two");
  GenerationSummary summary;
  summary.reason = FinishReason::kLength;
  stream.Push({"!", {}});
  stream.Finish(absl::OkStatus(), summary);
  piece = stream.Next(kForever);
  ASSERT_OK(piece.status());
  EXPECT_EQ((*piece)->text, "!");
  piece = stream.Next(kForever);
  ASSERT_OK(piece.status());
  EXPECT_FALSE(piece->has_value());
  EXPECT_EQ(stream.summary().reason, FinishReason::kLength);
}

TEST(GenerationStream, Error_ComesAfterWhatWasPushed) {
  GenerationStream stream;
  stream.Push({"text", {}});
  stream.Finish(absl::InternalError("smoke"), {});
  EXPECT_OK(stream.Next(kForever).status());
  EXPECT_THAT(stream.Next(kForever).status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("smoke")));
}

TEST(GenerationStream, NothingInTime_CanBeAskedAgain) {
  GenerationStream stream;
  EXPECT_THAT(stream.Next(SystemClock().Now()).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("in time")));
  stream.Push({"late", {}});
  EXPECT_OK(stream.Next(SystemClock().Now()).status());
}

TEST(GenerationStream, Cancel_WakesTheEngine) {
  bool woken = false;
  GenerationStream stream([&] { woken = true; });
  EXPECT_FALSE(stream.cancelled());
  stream.Cancel();
  EXPECT_TRUE(stream.cancelled());
  EXPECT_TRUE(woken);
}

TEST(GenerationStream, OtherThread_GetsEverything) {
  GenerationStream stream;
  std::string text;
  absl::StatusOr<std::thread> reader = StartThread([&] {
    while (true) {
      const auto piece = stream.Next(kForever);
      if (!piece.ok() || !*piece) return;
      text += (*piece)->text;
    }
  });
  ASSERT_OK(reader.status());
  for (int i = 0; i < 1000; ++i) stream.Push({"x", {}});
  stream.Finish(absl::OkStatus(), {});
  reader->join();
  EXPECT_EQ(text, std::string(1000, 'x'));
}

}  // namespace
}  // namespace weft
