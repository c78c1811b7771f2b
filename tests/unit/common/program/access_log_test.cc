// The races that AccessLog finds are those that there are.
#include "common/program/access_log.h"

#include <algorithm>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBytes = 64;

// An arena, a cache and a weight of device 0; three devices with a stream each.
Program Slots() {
  Program program;
  for (int32_t d = 0; d < 3; ++d) {
    program.devices.push_back({"", {d}});
    program.streams.push_back({d, {}});
  }
  program.slots = {{SlotKind::kArena, 0, 0, kBytes},
                   {SlotKind::kCache, 0, 0, kBytes},
                   {SlotKind::kWeight, 0, 0, kBytes}};
  return program;
}

TEST(AccessLog, AccessesInAnyOrder_ConflictOnlyWithWrites) {
  const Program program = Slots();
  AccessLog log(program);
  ASSERT_OK(log.Write({0, 0, 32}, 0, {1, -1, -1}));
  EXPECT_THAT(log.Read({0, 31, 40}, 1, {0, 1, -1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stream 0, command 0 may still write it")));
  ASSERT_OK(log.Read({0, 16, 32}, 1, {1, 1, -1}));
  ASSERT_OK(log.Read({0, 0, 20}, 2, {1, -1, 1}));
  ASSERT_OK(log.Write({0, 32, 64}, 2, {-1, -1, 2}));  // beside it
  EXPECT_THAT(log.Write({0, 0, 17}, 2, {1, -1, 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stream 1, command 0 may still read there")));
  ASSERT_OK(log.Write({0, 0, 17}, 2, {1, 1, 3}));
  EXPECT_THAT(log.Write({0, 16, 18}, 1, {1, 2, 2}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stream 2, command 2 may still write there")));
}

TEST(AccessLog, Caches_StartWithTheirPageCopies_WeightsAreNotKept) {
  const Program program = Slots();
  AccessLog log(program);
  EXPECT_THAT(log.Read({1, 0, 8}, 1, {-1, 1, -1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stream 0 at its start may still write it")));
  EXPECT_OK(log.Read({1, 0, 8}, 1, {0, 1, -1}));
  EXPECT_OK(log.Read({2, 0, 8}, 1, {-1, 1, -1}));
  EXPECT_OK(log.Read({0, 8, 8}, 1, {-1, 1, -1}));
}

struct Access {
  int32_t stream;
  int32_t position;
  std::vector<int32_t> clock;
  bool write;
  SlotRange range;
};

// Streams that touch ranges of the arena, and learn at random how far others have come.
class RandomAccesses {
 public:
  RandomAccesses(Random& random, int64_t bytes) : random_(random), bytes_(bytes) {
    for (int32_t s = 0; s < 3; ++s) clocks_[s][s] = 0;
  }

  Access Next() {
    const auto s = static_cast<int32_t>(random_.Between(0, 2));
    std::vector<int32_t>& clock = clocks_[s];
    ++clock[s];
    if (random_.Between(0, 1) == 0) {
      const std::vector<int32_t>& seen = clocks_[random_.Between(0, 2)];
      for (size_t t = 0; t < clock.size(); ++t) clock[t] = std::max(clock[t], seen[t]);
    }
    const int64_t begin = random_.Between(0, bytes_ - 1);
    return {s, clock[s], clock, random_.Between(0, 3) == 0,
            SlotRange{0, begin, random_.Between(begin + 1, bytes_)}};
  }

 private:
  Random& random_;
  const int64_t bytes_;
  std::vector<std::vector<int32_t>> clocks_ =
      std::vector<std::vector<int32_t>>(3, std::vector<int32_t>(3, -1));
};

bool Races(const Access& earlier, const Access& later) {
  return (earlier.write || later.write) && earlier.range.Overlaps(later.range) &&
         later.clock[earlier.stream] < earlier.position;
}

// Plays accesses until the first that races, and compares with all pairs.
void CheckAgainstPairs(Random& random, int64_t bytes, bool exact, int& races) {
  const Program program = Slots();
  AccessLog log(program);
  RandomAccesses accesses(random, bytes);
  std::vector<Access> before;
  for (int i = 0; i < 60; ++i) {
    const Access access = accesses.Next();
    const bool races_with_any = std::any_of(
        before.begin(), before.end(), [&](const Access& other) { return Races(other, access); });
    const bool found = !(access.write ? log.Write(access.range, access.stream, access.clock)
                                      : log.Read(access.range, access.stream, access.clock))
                            .ok();
    ASSERT_TRUE(found || !races_with_any) << "access " << i << " was let through";
    ASSERT_TRUE(!found || !exact || races_with_any) << "access " << i << " was refused";
    if (found) {
      races += races_with_any;
      return;
    }
    before.push_back(access);
  }
}

TEST(AccessLog, RandomAccesses_AgreeWithAllPairs) {
  Random random(TestSeed(1));
  int races = 0;
  for (int i = 0; i < 3000; ++i) {
    // Eight bytes are at most eight pieces: nothing is joined.
    CheckAgainstPairs(random, 8, true, races);
    CheckAgainstPairs(random, kBytes, false, races);
  }
  EXPECT_GT(races, 1000);
}

}  // namespace
}  // namespace weft
