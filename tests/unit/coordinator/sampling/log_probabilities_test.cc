#include "coordinator/sampling/log_probabilities.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(LogProbabilities, AllLogits_AreThoseOfTheSoftmax) {
  const LogProbabilities got = LogProbabilitiesOf({0.f, 2.f, -1.f, 1.f}, 2, 2);
  EXPECT_EQ(got.chosen.id, 2);
  EXPECT_NEAR(got.chosen.log_probability, std::log(.0320586), 1e-5);
  ASSERT_EQ(got.top.size(), 2);
  EXPECT_EQ(got.top[0].id, 1);
  EXPECT_NEAR(got.top[0].log_probability, std::log(.6439143), 1e-5);
  EXPECT_EQ(got.top[1].id, 3);
  EXPECT_NEAR(got.top[1].log_probability, std::log(.2368828), 1e-5);
}

TEST(LogProbabilities, InfiniteLogit_HasProbabilityOne) {
  const LogProbabilities got =
      LogProbabilitiesOf({0.f, std::numeric_limits<float>::infinity()}, 1, 0);
  EXPECT_EQ(got.chosen.log_probability, 0);
  EXPECT_TRUE(got.top.empty());
}

// Logits 3 (id 0), 2 (id 4, changed), 1 (id 2), then a rest of 3 and -1 that sums e^0 + e^-1.
CandidateRow Row() {
  CandidateRow row;
  row.ids = 5;
  row.best = {{0, 3}, {2, 1}};
  row.changed = {{4, 2}};
  row.rest_count = 2;
  row.rest_max = 0;
  row.rest_sum = static_cast<float>(1 + std::exp(-1.0));
  return row;
}

TEST(LogProbabilities, Candidates_GiveThemToo) {
  const std::vector<float> logits = {3, -1, 1, 0, 2};
  const LogProbabilities want = LogProbabilitiesOf(logits, 4, 3);
  const std::optional<LogProbabilities> got = LogProbabilitiesFrom(Row(), 4, 3);
  ASSERT_TRUE(got.has_value());
  EXPECT_NEAR(got->chosen.log_probability, want.chosen.log_probability, 1e-4);
  ASSERT_EQ(got->top.size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got->top[i].id, want.top[i].id);
    EXPECT_NEAR(got->top[i].log_probability, want.top[i].log_probability, 1e-4);
  }
}

TEST(LogProbabilities, BeyondTheCandidates_SayNothing) {
  EXPECT_FALSE(LogProbabilitiesFrom(Row(), 3, 1).has_value());
  EXPECT_FALSE(LogProbabilitiesFrom(Row(), 0, 4).has_value());
  CandidateRow bad = Row();
  bad.nan_count = 1;
  EXPECT_FALSE(LogProbabilitiesFrom(bad, 0, 1).has_value());
}

}  // namespace
}  // namespace weft
