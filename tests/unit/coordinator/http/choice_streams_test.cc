#include "coordinator/http/choice_streams.h"

#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

constexpr auto kForever = Clock::TimePoint::max();

class ChoiceStreamsTest : public testing::Test {
 protected:
  std::unique_ptr<ChoiceStreams> Make(int count) {
    for (int i = 0; i < count; ++i) streams_.push_back(std::make_shared<GenerationStream>());
    return std::make_unique<ChoiceStreams>(streams_, clock_);
  }

  SystemClock clock_;
  std::vector<std::shared_ptr<GenerationStream>> streams_;
};

TEST_F(ChoiceStreamsTest, Several_GiveAllTheyHaveInOrder) {
  auto all = Make(3);
  std::thread engine([&] {
    for (int piece = 0; piece < 50; ++piece) {
      for (int i = 0; i < 3; ++i) streams_[i]->Push({std::to_string(piece) + " ", {}});
    }
    for (int i = 2; i >= 0; --i) {
      GenerationSummary summary;
      summary.generated_tokens = i;
      streams_[i]->Finish(absl::OkStatus(), summary);
    }
  });
  std::vector<std::string> texts(3);
  int ended = 0;
  while (true) {
    ASSERT_OK_AND_ASSIGN(std::optional<ChoiceEvent> event, all->Next(kForever));
    if (!event) break;
    if (event->piece) {
      texts[event->choice] += event->piece->text;
    } else {
      ++ended;
      EXPECT_EQ(all->summary(event->choice).generated_tokens, event->choice);
    }
  }
  engine.join();
  EXPECT_EQ(ended, 3);
  std::string want;
  for (int piece = 0; piece < 50; ++piece) want += std::to_string(piece) + " ";
  for (const std::string& text : texts) EXPECT_EQ(text, want);
}

TEST_F(ChoiceStreamsTest, Nothing_TimesOutAndGoesOn) {
  for (const int count : {1, 3}) {
    streams_.clear();
    auto all = Make(count);
    EXPECT_THAT(all->Next(clock_.Now() + std::chrono::milliseconds(20)),
                StatusIs(absl::StatusCode::kDeadlineExceeded));
    EXPECT_TRUE(all->TimedOut());
    streams_[count - 1]->Push({"x", {}});
    ASSERT_OK_AND_ASSIGN(const std::optional<ChoiceEvent> event, all->Next(kForever));
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->choice, count - 1);
  }
}

TEST_F(ChoiceStreamsTest, AContinuationsDeadline_IsNoTimeout) {
  for (const int count : {1, 3}) {
    streams_.clear();
    auto all = Make(count);
    streams_[count - 1]->Finish(absl::DeadlineExceededError("its own"), {});
    EXPECT_THAT(all->Next(kForever),
                StatusIs(absl::StatusCode::kDeadlineExceeded, testing::HasSubstr("its own")));
    EXPECT_FALSE(all->TimedOut());
  }
}

// Also where it had something when they were put together.
TEST_F(ChoiceStreamsTest, APieceOfAny_EndsTheWait) {
  streams_.push_back(std::make_shared<GenerationStream>());
  streams_[0]->Push({"early", {}});
  auto all = Make(3);
  ASSERT_OK_AND_ASSIGN(std::optional<ChoiceEvent> event, all->Next(kForever));
  EXPECT_EQ(event->choice, 0);
  for (const int64_t choice : {3, 1, 2}) {
    std::thread engine([&] { streams_[choice]->Push({"x", {}}); });
    ASSERT_OK_AND_ASSIGN(event, all->Next(kForever));
    engine.join();
    EXPECT_EQ(event->choice, choice);
  }
}

TEST_F(ChoiceStreamsTest, Dropped_CancelsWhatIsUnderWay) {
  auto all = Make(2);
  streams_[0]->Finish(absl::OkStatus(), {});
  all.reset();
  EXPECT_TRUE(streams_[1]->cancelled());
}

}  // namespace
}  // namespace weft
