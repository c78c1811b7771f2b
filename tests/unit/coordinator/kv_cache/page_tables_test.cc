#include "coordinator/kv_cache/page_tables.h"

#include <set>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using testing::HasSubstr;

TEST(PageTables, Reserve_GivesPagesAndUpdates) {
  PageTables tables(2, 4, 9);
  EXPECT_EQ(tables.free_pages(), 8);
  ASSERT_OK(tables.Reserve(1, 17));
  const std::vector<TableUpdate> updates = tables.TakeUpdates();
  ASSERT_EQ(updates.size(), 2);
  EXPECT_EQ(updates[0].entry, 4);
  EXPECT_EQ(updates[1].entry, 5);
  EXPECT_EQ(tables.Slot(1, 0), updates[0].page * 16);
  EXPECT_EQ(tables.Slot(1, 16), updates[1].page * 16);
  EXPECT_EQ(tables.Slot(1, 15), updates[0].page * 16 + 15);
  EXPECT_TRUE(tables.TakeUpdates().empty());
  ASSERT_OK(tables.Reserve(1, 32));  // still two pages
  EXPECT_TRUE(tables.TakeUpdates().empty());
}

TEST(PageTables, Reserve_TooLong_IsAnErrorAndChangesNothing) {
  PageTables tables(1, 2, 3);
  EXPECT_THAT(tables.Reserve(0, 33), StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("33")));
  PageTables small(2, 2, 3);
  ASSERT_OK(small.Reserve(0, 17));
  EXPECT_THAT(small.Reserve(1, 1),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("0 free")));
  EXPECT_EQ(small.free_pages(), 0);
}

// Random use: no page belongs to two sequences, page 0 to none, and none is lost.
TEST(PageTables, RandomUse_KeepsPagesApart) {
  constexpr uint64_t kSeed = 42;
  Random random(kSeed);
  constexpr int32_t kSequences = 5, kPerSequence = 6, kPages = 20;
  PageTables tables(kSequences, kPerSequence, kPages);
  std::vector<int64_t> lengths(kSequences, 0);
  for (int step = 0; step < 5000; ++step) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << " step " << step);
    const auto sequence = static_cast<int32_t>(random.Between(0, kSequences - 1));
    const int64_t length = random.Between(0, kPerSequence * 16);
    if (length > lengths[sequence]) {
      if (tables.Reserve(sequence, length).ok()) lengths[sequence] = length;
    } else {
      tables.Truncate(sequence, length);
      lengths[sequence] = length;
    }
    std::set<int32_t> used;
    for (int32_t s = 0; s < kSequences; ++s) {
      for (int64_t position = 0; position < lengths[s]; position += 16) {
        const int32_t page = tables.Slot(s, position) / 16;
        ASSERT_GE(page, 1);
        ASSERT_LT(page, kPages);
        ASSERT_TRUE(used.insert(page).second);
      }
    }
    ASSERT_EQ(static_cast<int32_t>(used.size()) + tables.free_pages(), kPages - 1);
  }
}

std::vector<int32_t> Tokens(int64_t count, int32_t first = 0) {
  std::vector<int32_t> tokens(count);
  for (int64_t i = 0; i < count; ++i) tokens[i] = first + static_cast<int32_t>(i);
  return tokens;
}

TEST(PageTables, Adopt_GivesWholePagesButNeverAll) {
  PageTables tables(2, 4, 9);
  ASSERT_OK(tables.Reserve(0, 40));
  tables.Publish(0, Tokens(40));
  EXPECT_EQ(tables.Adopt(1, Tokens(33)), 32);
  EXPECT_EQ(tables.Slot(1, 20), tables.Slot(0, 20));
  EXPECT_EQ(tables.free_pages(), 5);
  tables.Truncate(1, 0);
  EXPECT_EQ(tables.Adopt(1, Tokens(32)), 16);
  tables.Truncate(1, 0);
  EXPECT_EQ(tables.Adopt(1, Tokens(33, 1)), 0);
}

TEST(PageTables, Adopt_TellsTheDevice) {
  PageTables tables(2, 4, 9);
  ASSERT_OK(tables.Reserve(0, 16));
  tables.Publish(0, Tokens(16));
  const int32_t page = tables.TakeUpdates()[0].page;
  ASSERT_EQ(tables.Adopt(1, Tokens(17)), 16);
  const std::vector<TableUpdate> updates = tables.TakeUpdates();
  ASSERT_EQ(updates.size(), 1);
  EXPECT_EQ(updates[0].entry, 4);
  EXPECT_EQ(updates[0].page, page);
}

// What nobody uses is kept until there is no other room; ends go before beginnings.
TEST(PageTables, KeptPages_GoLast) {
  PageTables tables(2, 4, 7);
  ASSERT_OK(tables.Reserve(0, 48));
  tables.Publish(0, Tokens(48));
  tables.Truncate(0, 0);
  EXPECT_EQ(tables.kept_pages(), 3);
  EXPECT_EQ(tables.free_pages(), 6);
  ASSERT_OK(tables.Reserve(1, 64));  // the three that hold nothing, and one more
  EXPECT_EQ(tables.kept_pages(), 2);
  EXPECT_EQ(tables.Adopt(0, Tokens(60)), 32);
  EXPECT_EQ(tables.free_pages(), 0);
}

TEST(PageTables, Truncate_InASharedPage_GivesItUp) {
  PageTables tables(2, 4, 9);
  ASSERT_OK(tables.Reserve(0, 32));
  tables.Publish(0, Tokens(32));
  ASSERT_EQ(tables.Adopt(1, Tokens(40)), 32);
  EXPECT_EQ(tables.Truncate(1, 20), 16);
  EXPECT_EQ(tables.Truncate(0, 20), 20);  // alone now: what follows is forgotten
  tables.Truncate(1, 0);
  EXPECT_EQ(tables.Adopt(1, Tokens(40)), 16);
}

// Texts with common beginnings, written page by page: nobody ever reads a page that holds something
// else, and none is lost.
TEST(PageTables, RandomTexts_SharedPagesHoldTheirTokens) {
  Random random(TestSeed(1));
  constexpr int32_t kSequences = 5, kPerSequence = 6, kPages = 20;
  PageTables tables(kSequences, kPerSequence, kPages);
  std::vector<std::vector<int32_t>> texts(kSequences);
  std::vector<std::vector<int32_t>> held(kPages, std::vector<int32_t>(16, -1));
  int64_t adopted = 0;
  for (int step = 0; step < 20000; ++step) {
    const auto s = static_cast<int32_t>(random.Between(0, kSequences - 1));
    std::vector<int32_t>& text = texts[s];
    const int64_t what = random.Between(0, 5);
    if (what == 0) {
      text.resize(tables.Truncate(s, random.Between(0, static_cast<int64_t>(text.size()))));
    } else if (what == 1) {
      tables.Truncate(s, 0);
      std::vector<int32_t> wanted(random.Between(1, kPerSequence * 16));
      for (size_t i = 0; i < wanted.size(); ++i) {
        wanted[i] = static_cast<int32_t>(i / 16 % 2 == 0 ? 0 : random.Between(0, 40) == 0);
      }
      wanted.resize(tables.Adopt(s, wanted));
      text = wanted;
      adopted += static_cast<int64_t>(text.size());
    } else if (what == 2) {
      tables.Publish(s, text);
    } else {
      const int64_t length = std::min<int64_t>(
          static_cast<int64_t>(text.size()) + random.Between(1, 20), kPerSequence * 16);
      if (!tables.Reserve(s, length).ok()) continue;
      while (static_cast<int64_t>(text.size()) < length) {
        const auto position = static_cast<int64_t>(text.size());
        text.push_back(static_cast<int32_t>(random.Between(0, 60) == 0));
        const int32_t slot = tables.Slot(s, position);
        held[slot / 16][slot % 16] = text.back();
      }
    }
    std::set<int32_t> used;
    for (int32_t other = 0; other < kSequences; ++other) {
      for (size_t position = 0; position < texts[other].size(); ++position) {
        const int32_t slot = tables.Slot(other, static_cast<int64_t>(position));
        used.insert(slot / 16);
        ASSERT_EQ(held[slot / 16][slot % 16], texts[other][position])
            << "step " << step << " sequence " << other << " position " << position;
      }
    }
    ASSERT_FALSE(used.contains(0));
    ASSERT_EQ(static_cast<int32_t>(used.size()) + tables.free_pages(), kPages - 1);
  }
  EXPECT_GT(adopted, 1000);
}

}  // namespace
}  // namespace weft
