#include "coordinator/serving/batch_former.h"

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using testing::ElementsAre;

constexpr BatchLimits kRoomy = {.tokens = 16, .free_pages = 100, .page_tokens = 16, .stages = 1};

TEST(FormBatch, OneTokenEach_BeforePrompts) {
  const BatchChoice choice = FormBatch({{40, false, 0}, {1, false, 3}, {1, false, 3}}, kRoomy, 0);
  EXPECT_THAT(choice.shares, ElementsAre(BatchShare{1, 1}, BatchShare{2, 1}, BatchShare{0, 14}));
  EXPECT_FALSE(choice.logits);
  EXPECT_FALSE(choice.short_of_pages);
}

TEST(FormBatch, SeveralPrompts_OldestFirst) {
  const BatchChoice choice = FormBatch({{10, false, 0}, {10, false, 0}}, kRoomy, 0);
  EXPECT_THAT(choice.shares, ElementsAre(BatchShare{0, 10}, BatchShare{1, 6}));
}

TEST(FormBatch, NothingToGo_IsLeftOut) {
  EXPECT_TRUE(FormBatch({{0, false, 5}}, kRoomy, 0).shares.empty());
  EXPECT_TRUE(FormBatch({}, kRoomy, 0).shares.empty());
}

TEST(FormBatch, MoreThanAStep_TakesTurns) {
  BatchLimits limits = kRoomy;
  limits.tokens = 2;
  const std::vector<BatchCandidate> three(3, BatchCandidate{1, false, 1});
  EXPECT_THAT(FormBatch(three, limits, 0).shares, ElementsAre(BatchShare{0, 1}, BatchShare{1, 1}));
  EXPECT_THAT(FormBatch(three, limits, 2).shares, ElementsAre(BatchShare{2, 1}, BatchShare{0, 1}));
}

TEST(FormBatch, Stages_ShareTheSequences) {
  BatchLimits limits = kRoomy;
  limits.stages = 2;
  // One of three is in a step already.
  EXPECT_THAT(
      FormBatch({{0, false, 1}, {1, false, 1}, {1, false, 1}, {1, false, 1}}, limits, 0).shares,
      ElementsAre(BatchShare{1, 1}, BatchShare{2, 1}));
}

TEST(FormBatch, AllLogits_HaveAStepOfTheirOwn) {
  const BatchChoice choice = FormBatch({{1, false, 1}, {1, true, 1}, {9, false, 0}}, kRoomy, 0);
  EXPECT_TRUE(choice.logits);
  EXPECT_THAT(choice.shares, ElementsAre(BatchShare{1, 1}));
}

TEST(FormBatch, FewPages_AsMuchAsFits) {
  BatchLimits limits = kRoomy;
  limits.tokens = 100;
  limits.free_pages = 2;
  const BatchChoice choice = FormBatch({{50, false, 3}, {1, false, 0}}, limits, 0);
  EXPECT_THAT(choice.shares, ElementsAre(BatchShare{1, 1}, BatchShare{0, 19}));
  EXPECT_TRUE(choice.short_of_pages);
  limits.free_pages = 0;
  const BatchChoice none = FormBatch({{1, false, 0}}, limits, 0);
  EXPECT_TRUE(none.shares.empty());
  EXPECT_TRUE(none.short_of_pages);
}

// Never more than the step, the pages or the sequence have; nobody waits for more turns than there
// are sequences.
TEST(FormBatch, RandomCandidates_KeepTheLimits) {
  Random random(TestSeed(1));
  for (int round = 0; round < 5000; ++round) {
    std::vector<BatchCandidate> candidates(random.Between(0, 12));
    for (BatchCandidate& candidate : candidates) {
      candidate.remaining = random.Between(0, 2) == 0 ? random.Between(0, 60) : 1;
      candidate.wants_logits = random.Between(0, 5) == 0;
      candidate.free_tokens = random.Between(0, 15);
    }
    const BatchLimits limits = {random.Between(1, 40), random.Between(0, 6), 16,
                                random.Between(1, 3)};
    const BatchChoice choice = FormBatch(candidates, limits, random.Between(0, 50));
    int64_t tokens = 0;
    int64_t pages = 0;
    std::vector<bool> seen(candidates.size(), false);
    for (const BatchShare& share : choice.shares) {
      const BatchCandidate& candidate = candidates[share.candidate];
      ASSERT_FALSE(seen[share.candidate]);
      seen[share.candidate] = true;
      ASSERT_GE(share.tokens, 1);
      ASSERT_LE(share.tokens, candidate.remaining);
      if (candidate.remaining == 1) {
        ASSERT_EQ(candidate.wants_logits, choice.logits);
      }
      tokens += share.tokens;
      pages += (std::max<int64_t>(share.tokens - candidate.free_tokens, 0) + 15) / 16;
    }
    ASSERT_LE(tokens, limits.tokens);
    ASSERT_LE(pages, limits.free_pages);
  }
}

}  // namespace
}  // namespace weft
