#include "coordinator/sampling/sampler.h"

#include <cmath>
#include <limits>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Spec M.7: p = .6439143, .2368828, .0871443, .0320586.
std::vector<Candidate> Worked() { return {{0, 2}, {1, 1}, {2, 0}, {3, -1}}; }

TEST(Stages, KeepTopP_WorkedValues_KeepsThree) {
  std::vector<Candidate> c = Worked();
  KeepTopP(0.9f, c);
  EXPECT_EQ(c.size(), 3);
}

TEST(Stages, KeepMinP_WorkedValues_KeepsTwo) {
  std::vector<Candidate> c = Worked();
  KeepMinP(0.3f, c);
  EXPECT_EQ(c.size(), 2);
}

TEST(Stages, KeepTopK_EqualLogits_LowerIdFirst) {
  std::vector<Candidate> c = {{0, 1}, {1, 3}, {2, 3}, {3, 2}};
  KeepTopK(3, c);
  EXPECT_THAT(c, ElementsAre(Candidate{1, 3}, Candidate{2, 3}, Candidate{3, 2}));
}

TEST(Stages, OffValues_ChangeNothing) {
  std::vector<Candidate> c = Worked();
  KeepTopK(0, c);
  KeepTopP(1, c);
  KeepMinP(0, c);
  EXPECT_EQ(c, Worked());
}

TEST(Stages, ApplyPenalties_WorkedValues) {
  SamplerOptions options;
  options.repeat_penalty = 1.1f;
  options.frequency_penalty = 0.5f;
  options.presence_penalty = 0.3f;
  std::vector<Candidate> c = {{0, 2}, {1, -1}, {2, 5}};
  ApplyPenalties(options, {0, 1, 0}, c);
  EXPECT_NEAR(c[0].logit, 0.5181818f, 1e-6);
  EXPECT_NEAR(c[1].logit, -1.9f, 1e-6);
  EXPECT_EQ(c[2].logit, 5);
}

TEST(Stages, DrawFromSoftmax_Boundaries_PicksByCumulativeMass) {
  const std::vector<Candidate> c = Worked();
  EXPECT_EQ(DrawFromSoftmax(c, 0.0), 0);
  EXPECT_EQ(DrawFromSoftmax(c, 0.643), 0);
  EXPECT_EQ(DrawFromSoftmax(c, 0.645), 1);
  EXPECT_EQ(DrawFromSoftmax(c, 0.97), 3);
  const std::vector<Candidate> tail = {{0, 0}, {1, -std::numeric_limits<float>::infinity()}};
  EXPECT_EQ(DrawFromSoftmax(tail, 0.99999999), 0);
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

// Chi-square of 20000 draws against the softmax: 3 degrees of freedom, far beyond the 99.99 % point
// (21.1) is an error.
TEST(Sampler, Draws_FollowSoftmax) {
  SamplerOptions options;
  options.temperature = 1;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  options.seed = 11;
  Sampler sampler(options);
  const std::vector<double> p = {.6439143, .2368828, .0871443, .0320586};
  std::map<int32_t, int> counts;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_OK_AND_ASSIGN(const int32_t token, sampler.Sample({2.f, 1.f, 0.f, -1.f}));
    ++counts[token];
  }
  double chi = 0;
  for (int i = 0; i < 4; ++i) {
    const double expected = p[i] * kDraws;
    chi += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi, 25.0);
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
  options.temperature = std::nanf("");
  EXPECT_THAT(CheckSamplerOptions(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("temperature")));
  EXPECT_OK(CheckSamplerOptions(SamplerOptions{}));
}

}  // namespace
}  // namespace weft
