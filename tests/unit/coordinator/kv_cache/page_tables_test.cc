#include "coordinator/kv_cache/page_tables.h"

#include <set>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

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

}  // namespace
}  // namespace weft
