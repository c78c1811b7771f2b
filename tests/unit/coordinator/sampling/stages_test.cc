// Each stage against worked values (spec M.7).
#include "coordinator/sampling/stages.h"

#include <cmath>
#include <limits>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// p = .6439143, .2368828, .0871443, .0320586; entropy .9475370.
std::vector<Candidate> Worked() { return {{0, 2}, {1, 1}, {2, 0}, {3, -1}}; }

std::vector<int32_t> Ids(const std::vector<Candidate>& candidates) {
  std::vector<int32_t> ids;
  for (const Candidate& c : candidates) ids.push_back(c.id);
  return ids;
}

TEST(Stages, TopP_KeepsThree) {
  std::vector<Candidate> c = Worked();
  KeepTopP(0.9f, 1, c);
  EXPECT_EQ(c.size(), 3);
  c = Worked();
  KeepTopP(0, 2, c);
  EXPECT_EQ(c.size(), 2);
}

TEST(Stages, MinP_KeepsTwo) {
  std::vector<Candidate> c = Worked();
  KeepMinP(0.3f, 1, c);
  EXPECT_EQ(c.size(), 2);
  c = Worked();
  KeepMinP(0.3f, 9, c);
  EXPECT_EQ(c.size(), 4);
}

TEST(Stages, TopK_EqualLogits_LowerIdFirst) {
  std::vector<Candidate> c = {{0, 1}, {1, 3}, {2, 3}, {3, 2}};
  KeepTopK(3, c);
  EXPECT_THAT(c, ElementsAre(Candidate{1, 3}, Candidate{2, 3}, Candidate{3, 2}));
}

// The order by typicality is 1, 0, 2, 3; the likeliest is dropped.
TEST(Stages, Typical_OrdersByDistanceFromEntropy) {
  std::vector<Candidate> c = Worked();
  KeepTypical(0.2f, 1, c);
  EXPECT_THAT(Ids(c), ElementsAre(1));
  c = Worked();
  KeepTypical(0.9f, 1, c);
  EXPECT_THAT(Ids(c), ElementsAre(1, 0, 2));
  c = Worked();
  KeepTypical(0.2f, 2, c);
  EXPECT_THAT(Ids(c), ElementsAre(1, 0));
  c = {{0, 0}, {1, -kInfinity}};
  KeepTypical(0.99f, 1, c);
  EXPECT_THAT(Ids(c), ElementsAre(0));
}

// Mean 0.5, deviation sqrt(1.25) = 1.118; -infinity does not count.
TEST(Stages, TopNSigma_CutsBelowTheMaximum) {
  std::vector<Candidate> c = Worked();
  c.push_back({4, -kInfinity});
  CutTopNSigma(1, c);
  EXPECT_THAT(c, ElementsAre(Candidate{0, 2}, Candidate{1, 1}, Candidate{2, -kInfinity},
                             Candidate{3, -kInfinity}, Candidate{4, -kInfinity}));
}

TEST(Stages, Xtc_LeavesTheLastOfTheTopChoices) {
  std::vector<Candidate> c = Worked();
  ExcludeTopChoices(0.08f, 1, c);
  EXPECT_THAT(Ids(c), ElementsAre(2, 3));
  c = Worked();
  ExcludeTopChoices(0.3f, 1, c);  // one qualifies
  EXPECT_EQ(c.size(), 4);
  ExcludeTopChoices(0.08f, 3, c);  // would leave two
  EXPECT_EQ(c.size(), 4);
  ExcludeTopChoices(0.51f, 1, c);
  EXPECT_EQ(c.size(), 4);
}

TEST(Stages, OffValues_ChangeNothing) {
  std::vector<Candidate> c = Worked();
  KeepTopK(0, c);
  KeepTypical(1, 1, c);
  KeepTopP(1, 1, c);
  KeepMinP(0, 1, c);
  CutTopNSigma(-1, c);
  ApplyBias({}, c);
  EXPECT_EQ(c, Worked());
}

TEST(Stages, Penalties_WorkedValues) {
  SamplerOptions options;
  options.repeat_penalty = 1.1f;
  options.frequency_penalty = 0.5f;
  options.presence_penalty = 0.3f;
  std::vector<Candidate> c = {{0, 2}, {1, -1}, {2, 5}};
  ApplyPenalties(options, {0, 1, 0, 9}, c);
  EXPECT_NEAR(c[0].logit, 0.5181818f, 1e-6);
  EXPECT_NEAR(c[1].logit, -1.9f, 1e-6);
  EXPECT_EQ(c[2].logit, 5);
}

TEST(Stages, DynamicTemperature_FollowsTheEntropy) {
  const std::vector<Candidate> worked = Worked();
  // .9475370 / ln 4 = .6835034: 0.5 + 1 * that, and its square.
  EXPECT_NEAR(DynamicTemperature(1, 0.5f, 1, worked), 1.1835034f, 1e-5);
  EXPECT_NEAR(DynamicTemperature(1, 0.5f, 2, worked), 0.9671769f, 1e-5);
  EXPECT_NEAR(DynamicTemperature(0.5f, 2, 1, worked), 2.5f * 0.6835034f, 1e-5);
  EXPECT_EQ(DynamicTemperature(1, 0, 1, worked), 1);
  EXPECT_EQ(DynamicTemperature(0.7f, 1, 1, {worked.data(), 1}), 0.7f);
  const std::vector<Candidate> flat = {{0, 3}, {1, 3}};
  EXPECT_NEAR(DynamicTemperature(1, 0.5f, 3, flat), 1.5f, 1e-6);
}

TEST(Stages, DrawFromSoftmax_Boundaries_PicksByCumulativeMass) {
  const std::vector<Candidate> c = Worked();
  EXPECT_EQ(DrawFromSoftmax(c, 0.0), 0);
  EXPECT_EQ(DrawFromSoftmax(c, 0.643), 0);
  EXPECT_EQ(DrawFromSoftmax(c, 0.645), 1);
  EXPECT_EQ(DrawFromSoftmax(c, 0.97), 3);
  const std::vector<Candidate> tail = {{0, 0}, {1, -kInfinity}};
  EXPECT_EQ(DrawFromSoftmax(tail, 0.99999999), 0);
  const std::vector<Candidate> head = {{0, -kInfinity}, {1, 0}};
  EXPECT_EQ(DrawFromSoftmax(head, 0.0), 1);
}

// Surprises in bits: .635, 2.078, 3.520, 4.963.
TEST(Stages, Mirostat2_CutsBySurprise) {
  EXPECT_EQ(CountOfMirostat2(0, Worked()), 1);
  EXPECT_EQ(CountOfMirostat2(2, Worked()), 1);
  EXPECT_EQ(CountOfMirostat2(2.1f, Worked()), 2);
  EXPECT_EQ(CountOfMirostat2(3.6f, Worked()), 3);
  EXPECT_EQ(CountOfMirostat2(5, Worked()), 4);
}

// Logits of Zipf's law with exponent s give s back, so k is that of the formula.
TEST(Stages, Mirostat1_FindsTheExponentOfZipf) {
  constexpr int kCount = 1000;
  constexpr double kExponent = 1.4, kMu = 5;
  std::vector<Candidate> c;
  for (int i = 0; i < kCount; ++i) {
    c.push_back({i, static_cast<float>(-kExponent * std::log(i + 1))});
  }
  const double epsilon = kExponent - 1;
  const double k =
      std::pow(epsilon * std::exp2(kMu) / (1 - std::pow(kCount, -epsilon)), 1 / kExponent);
  EXPECT_EQ(CountOfMirostat1(kMu, c), static_cast<size_t>(k));
  EXPECT_EQ(CountOfMirostat1(-40, c), 1);
  EXPECT_EQ(CountOfMirostat1(100, c), kCount);
  const std::vector<Candidate> flat(10);
  EXPECT_EQ(CountOfMirostat1(1, flat), 10);
}

// INV-J2: no stage empties a list, and all but typical and XTC keep the first.
TEST(Stages, RandomLists_KeepSomething) {
  Random random(TestSeed(21));
  for (uint64_t i = 0; i < TestCount(2000); ++i) {
    std::vector<Candidate> c(random.Between(1, 30));
    for (size_t j = 0; j < c.size(); ++j) {
      c[j] = {static_cast<int32_t>(j), static_cast<float>(4 * random.Normal())};
      if (random.Between(0, 4) == 0) c[j].logit = -kInfinity;
    }
    c[random.Between(0, std::ssize(c) - 1)].logit = 1;
    KeepTopK(0, c);
    const Candidate first = c[0];
    const auto p = static_cast<float>(random.Uniform());
    const auto min_keep = static_cast<size_t>(random.Between(0, 5));
    std::vector<Candidate> list = c;
    KeepTopP(p, min_keep, list);
    KeepMinP(p, min_keep, list);
    CutTopNSigma(p, list);
    KeepTopK(static_cast<int32_t>(random.Between(0, 3)), list);
    ASSERT_THAT(list, testing::Not(IsEmpty()));
    EXPECT_EQ(list[0], first);
    list = c;
    KeepTypical(p, min_keep, list);
    ASSERT_THAT(list, testing::Not(IsEmpty()));
    EXPECT_GT(list[0].logit, -kInfinity);
    list = c;
    ExcludeTopChoices(p, min_keep, list);
    ASSERT_THAT(list, testing::Not(IsEmpty()));
    EXPECT_GT(list[DrawFromSoftmax(list, p)].logit, -kInfinity);
  }
}

}  // namespace
}  // namespace weft
