#include "coordinator/meta/rank_cuts.h"

#include <numeric>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

std::vector<int64_t> Sizes(const RankCutRequest& request) {
  std::vector<int64_t> sizes;
  for (const IndexRange& range : CutBetweenRanks(request)) sizes.push_back(range.size());
  return sizes;
}

// Spec M.6.
TEST(RankCuts, WorkedValues_OfTheSpec) {
  const std::vector<double> equal = {1, 1, 1};
  const auto heads = [&](int64_t rotation) {
    return Sizes({.length = 32, .preferred = 4, .least = 1, .shares = equal, .rotation = rotation});
  };
  EXPECT_THAT(heads(0), testing::ElementsAre(8, 12, 12));
  EXPECT_THAT(heads(1), testing::ElementsAre(12, 8, 12));
  EXPECT_THAT(heads(2), testing::ElementsAre(12, 12, 8));
  const auto columns = [&](int64_t rotation) {
    return Sizes(
        {.length = 14336, .preferred = 128, .least = 32, .shares = equal, .rotation = rotation});
  };
  EXPECT_THAT(columns(0), testing::ElementsAre(4736, 4736, 4864));
  EXPECT_THAT(columns(1), testing::ElementsAre(4864, 4736, 4736));
  EXPECT_THAT(columns(2), testing::ElementsAre(4736, 4864, 4736));
  const std::vector<double> uneven = {0.75, 0.25};
  for (const int64_t rotation : {0, 1}) {
    EXPECT_THAT(Sizes({.length = 4, .preferred = 1, .shares = uneven, .rotation = rotation}),
                testing::ElementsAre(3, 1));
  }
}

TEST(RankCuts, ARankWouldGoEmpty_TheUnitFalls) {
  const std::vector<double> four = {1, 1, 1, 1};
  // Two KV heads of four queries: four ranks get two queries each.
  EXPECT_THAT(Sizes({.length = 8, .preferred = 4, .least = 1, .shares = four}),
              testing::ElementsAre(2, 2, 2, 2));
  // 96 columns in blocks of 32: three of four ranks have one.
  const std::vector<int64_t> sizes =
      Sizes({.length = 96, .preferred = 128, .least = 32, .shares = four});
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), 96);
  EXPECT_THAT(sizes, testing::UnorderedElementsAre(0, 32, 32, 32));
}

TEST(RankCuts, NoShare_NoPart) {
  const std::vector<double> shares = {1, 0, 2, 0};
  EXPECT_THAT(Sizes({.length = 9, .shares = shares}), testing::ElementsAre(3, 0, 6, 0));
}

TEST(RankCuts, AnyRequest_CoversAllAndFeedsAll) {
  Random random(TestSeed(1));
  for (uint64_t i = 0; i < TestCount(2000); ++i) {
    const auto ranks = static_cast<size_t>(random.Between(1, 17));
    std::vector<double> shares;
    for (size_t r = 0; r < ranks; ++r) shares.push_back(static_cast<double>(random.Between(1, 9)));
    const int64_t least = random.Between(1, 4);
    const int64_t preferred = least * random.Between(1, 4);
    const int64_t length = least * random.Between(1, 60);
    const std::vector<IndexRange> ranges = CutBetweenRanks({.length = length,
                                                            .preferred = preferred,
                                                            .least = least,
                                                            .shares = shares,
                                                            .rotation = random.Between(0, 40)});
    int64_t at = 0;
    int64_t fed = 0;
    for (const IndexRange& range : ranges) {
      ASSERT_EQ(range.begin, at);
      ASSERT_GE(range.size(), 0);
      ASSERT_EQ(range.size() % least, 0);
      at = range.end;
      fed += range.size() > 0 ? 1 : 0;
    }
    ASSERT_EQ(at, length);
    ASSERT_GE(fed, std::min<int64_t>(static_cast<int64_t>(ranks), length / preferred));
    if (length / least >= static_cast<int64_t>(ranks)) {
      ASSERT_EQ(fed, static_cast<int64_t>(ranks));
    }
  }
}

TEST(RankCuts, GroupsOfHeads_CoverTheirQueries) {
  const std::vector<IndexRange> heads = {{0, 3}, {3, 3}, {3, 8}, {8, 16}};
  EXPECT_THAT(GroupsOf(heads, 4), testing::ElementsAre(IndexRange{0, 1}, IndexRange{0, 0},
                                                       IndexRange{0, 2}, IndexRange{2, 4}));
}

}  // namespace
}  // namespace weft
