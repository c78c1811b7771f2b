#include "coordinator/sampling/sampler.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using testing::HasSubstr;

MATCHER_P(IsOkAndHolds, value, "") {
  *result_listener << arg.status().ToString();
  return arg.ok() && *arg == value;
}

TEST(Sampler, Greedy_PicksFirstMaximum) {
  SamplerOptions options;
  options.temperature = 0;
  Sampler sampler(options);
  ASSERT_OK_AND_ASSIGN(const int32_t token, sampler.Sample({0.f, 2.f, 2.f, 1.f}));
  EXPECT_EQ(token, 1);
}

TEST(Sampler, SameSeed_SameTokens) {
  SamplerOptions options;
  options.seed = 7;
  Sampler a(options), b(options);
  Random noise(3);
  for (int i = 0; i < 200; ++i) {
    std::vector<float> logits(50);
    for (float& x : logits) x = static_cast<float>(noise.Normal());
    ASSERT_OK_AND_ASSIGN(const int32_t x, a.Sample(logits));
    ASSERT_OK_AND_ASSIGN(const int32_t y, b.Sample(logits));
    ASSERT_EQ(x, y);
  }
}

TEST(Sampler, BadLogits_AreAnError) {
  Sampler sampler(SamplerOptions{});
  EXPECT_THAT(sampler.Sample({0.f, std::nanf("")}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("token 1")));
  const float none = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(sampler.Sample({none, none}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("finite")));
}

TEST(Sampler, PenaltyWindow_ForgetsOldTokens) {
  SamplerOptions options;
  options.temperature = 0;
  options.presence_penalty = 100;
  options.penalty_window = 1;
  Sampler sampler(options);
  sampler.Accept(0);
  ASSERT_OK_AND_ASSIGN(const int32_t first, sampler.Sample({5.f, 4.f}));
  EXPECT_EQ(first, 1);
  sampler.Accept(first);
  ASSERT_OK_AND_ASSIGN(const int32_t second, sampler.Sample({5.f, 4.f}));
  EXPECT_EQ(second, 0);
}

TEST(Options, BadValues_NameTheOption) {
  SamplerOptions options;
  options.repeat_penalty = 0;
  EXPECT_THAT(CheckSamplerOptions(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("repeat-penalty is 0")));
  options = {};
  options.logit_bias = {{4, std::nanf("")}};
  EXPECT_THAT(CheckSamplerOptions(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token 4")));
  options = {};
  options.dry.multiplier = -1;
  EXPECT_THAT(CheckSamplerOptions(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dry-multiplier is -1")));
  options = {};
  options.temperature = std::nanf("");
  EXPECT_THAT(CheckSamplerOptions(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("temp is nan")));
  EXPECT_OK(CheckSamplerOptions(SamplerOptions{}));
}

TEST(Sampler, LogitBias_MovesAndBansTokens) {
  SamplerOptions options;
  options.temperature = 0;
  options.logit_bias = {{0, -std::numeric_limits<float>::infinity()}, {2, 3.f}};
  Sampler sampler(options);
  EXPECT_THAT(sampler.Sample({9.f, 2.f, 0.f}), IsOkAndHolds(2));
  EXPECT_THAT(sampler.ChangedIds(), testing::ElementsAre(0, 2));
}

TEST(Sampler, BiasThatBansAll_IsAnError) {
  SamplerOptions options;
  const float never = -std::numeric_limits<float>::infinity();
  options.logit_bias = {{0, never}, {1, never}};
  Sampler sampler(options);
  EXPECT_THAT(sampler.Sample({1.f, 2.f}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no token is left")));
}

TEST(Sampler, InfiniteLogit_IsACertainty) {
  SamplerOptions options;
  options.typical_p = 0.5f;
  options.dynatemp_range = 0.5f;
  options.top_n_sigma = 1;
  Sampler sampler(options);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(sampler.Sample({1.f, std::numeric_limits<float>::infinity(), 5.f}),
                IsOkAndHolds(1));
  }
}

// The window is of tokens, so the repetition is found only while it is inside.
TEST(Sampler, Dry_WeakensTheRepetition) {
  SamplerOptions options;
  options.temperature = 0;
  options.dry.multiplier = 10;
  for (const auto& [window, want] : {std::pair{-1, 0}, {5, 0}, {3, 7}}) {
    options.dry.window = window;
    Sampler sampler(options);
    for (const int32_t token : {5, 6, 7, 5, 6}) sampler.Accept(token);
    std::vector<float> logits(8, 0.f);
    logits[7] = 4;
    EXPECT_THAT(sampler.Sample(logits), IsOkAndHolds(want)) << window;
  }
}

// Temperature 0 is the best of what XTC leaves; without XTC draws the best of all.
TEST(Sampler, GreedyWithXtc_TakesTheBestThatIsLeft) {
  SamplerOptions options;
  options.temperature = 0;
  options.top_p = 1;
  options.min_p = 0;
  options.xtc_probability = 1;
  options.xtc_threshold = 0.2f;
  Sampler sampler(options);
  EXPECT_THAT(sampler.Sample({2.f, 1.f, 0.f, -1.f}), IsOkAndHolds(1));
}

TEST(Sampler, ChainText_NamesWhatIsOn) {
  SamplerOptions options;
  options.seed = 3;
  EXPECT_EQ(SamplerChainText(options),
            "top-k 40 -> top-p 0.95 -> min-p 0.05 -> temperature 0.8 -> draw (seed 3)");
  options.logit_bias = {{1, 1.f}};
  options.repeat_penalty = 1.1f;
  options.dry.multiplier = 0.8f;
  options.top_n_sigma = 1;
  options.typical_p = 0.9f;
  options.xtc_probability = 0.5f;
  options.dynatemp_range = 0.3f;
  EXPECT_EQ(SamplerChainText(options),
            "logit bias (1) -> penalties (last 64: repeat 1.1, frequency 0, presence 0) -> dry "
            "(last -1: 0.8 * 1.75^(n - 2)) -> top-n-sigma 1 -> top-k 40 -> typical 0.9 -> top-p "
            "0.95 -> min-p 0.05 -> xtc 0.5 (threshold 0.1) -> temperature 0.8 +- 0.3 by entropy^1 "
            "-> draw (seed 3)");
  options.mirostat = Mirostat::kVersion2;
  EXPECT_EQ(SamplerChainText(options),
            "logit bias (1) -> temperature 0.8 -> mirostat 2 (tau 5, eta 0.1) -> draw (seed 3)");
  options.temperature = 0;
  EXPECT_EQ(SamplerChainText(options), "logit bias (1) -> greedy");
}

}  // namespace
}  // namespace weft
