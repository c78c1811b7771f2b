#include "coordinator/engine/token_times.h"

#include "gtest/gtest.h"
#include "tests/support/hand_clock.h"

namespace weft {
namespace {

using std::chrono::milliseconds;

StepOutput Output(double compute, double wait, double wire, double hand_off) {
  StepOutput output;
  output.compute_seconds = compute;
  output.wait_seconds = wait;
  output.wire_seconds = wire;
  output.hand_off_seconds = hand_off;
  return output;
}

TEST(TokenTimesTest, PartsAddUpToTheWallClock) {
  HandClock clock;
  TokenTimer timer(clock);
  clock.Move(milliseconds(1000));
  timer.Mark(TokenPart::kSampling);  // nobody asked yet
  timer.Begin();
  clock.Move(milliseconds(1));
  timer.Mark(TokenPart::kSampling);
  clock.Move(milliseconds(2));
  timer.Mark(TokenPart::kSending);
  clock.Move(milliseconds(100));
  timer.MarkStep(Output(0.060, 0.020, 0.008, 0.004));
  clock.Move(milliseconds(3));
  timer.Mark(TokenPart::kReading);
  clock.Move(milliseconds(5));  // between the parts
  timer.Begin();
  clock.Move(milliseconds(7));
  timer.End();
  clock.Move(milliseconds(1000));
  ASSERT_EQ(timer.tokens().size(), 2u);
  const TokenTimes& token = timer.tokens()[0];
  EXPECT_DOUBLE_EQ(token.wall_seconds, 0.111);
  EXPECT_NEAR(token.Sum(), token.wall_seconds, 1e-12);
  EXPECT_NEAR(token[TokenPart::kComputing], 0.060, 1e-12);
  EXPECT_NEAR(token[TokenPart::kWaiting], 0.020, 1e-12);
  EXPECT_NEAR(token[TokenPart::kTransit], 0.008, 1e-12);
  EXPECT_NEAR(token[TokenPart::kOther], 0.005, 1e-12);
  EXPECT_NEAR(timer.tokens()[1][TokenPart::kOther], 0.007, 1e-12);
}

TEST(TokenTimesTest, ARankThatBeganBeforeAllWereSentTheirPart) {
  HandClock clock;
  TokenTimer timer(clock);
  timer.Begin();
  clock.Move(milliseconds(10));
  timer.Mark(TokenPart::kSending);
  clock.Move(milliseconds(20));
  timer.MarkStep(Output(0.026, 0, 0, 0));
  timer.End();
  const TokenTimes& token = timer.tokens()[0];
  EXPECT_NEAR(token[TokenPart::kSending], 0.004, 1e-12);
  EXPECT_NEAR(token[TokenPart::kTransit], 0, 1e-12);
  EXPECT_NEAR(token.Sum(), token.wall_seconds, 1e-12);
}

TEST(TokenTimesTest, UsualIsTheMiddleFifth) {
  std::vector<TokenTimes> tokens(10);
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i].wall_seconds = i == 9 ? 1000 : static_cast<double>(i);
    tokens[i][TokenPart::kComputing] = tokens[i].wall_seconds;
  }
  const TokenTimes usual = UsualTokenTimes(tokens);
  EXPECT_DOUBLE_EQ(usual.wall_seconds, 4.5);
  EXPECT_DOUBLE_EQ(usual.Sum(), 4.5);
  EXPECT_DOUBLE_EQ(AllTokenTimes(tokens).wall_seconds, 1036);
  EXPECT_EQ(UsualTokenTimes({}).wall_seconds, 0);
  tokens.resize(1);
  tokens[0].wall_seconds = 3;
  EXPECT_DOUBLE_EQ(UsualTokenTimes(tokens).wall_seconds, 3);
}

}  // namespace
}  // namespace weft
