#include "common/program/collective_meter.h"

#include <set>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(CollectiveMeterTest, BySizeAndUse) {
  CollectiveMeter meter;
  meter.Add(CollectiveUse::kByParts, 4 << 10, 0.5, 10);
  meter.Add(CollectiveUse::kByParts, (4 << 10) + 1, 0.25, 20);
  meter.Add(CollectiveUse::kAllGather, int64_t{1} << 40, 2, 0);
  const CollectiveCounts counts = meter.counts();
  const auto& parts = counts.seconds[static_cast<size_t>(CollectiveUse::kByParts)];
  EXPECT_EQ(parts[0].count, 1);
  EXPECT_EQ(parts[1].count, 1);
  EXPECT_DOUBLE_EQ(parts[1].sum, 0.25);
  EXPECT_EQ(counts.seconds[static_cast<size_t>(CollectiveUse::kAllGather)].back().count, 1);
  EXPECT_EQ(counts.local_bytes, 30);
}

TEST(CollectiveMeterTest, NamesAreTheirOwn) {
  std::set<std::string> names;
  for (size_t i = 0; i < kCollectiveUses; ++i) {
    const std::string name = CollectiveUseText(static_cast<CollectiveUse>(i));
    EXPECT_EQ(name.find_first_of(" ,-"), std::string::npos) << name;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), kCollectiveUses);
  EXPECT_EQ(UseOf(CollectiveAlgorithm::kHostsFirstByParts), CollectiveUse::kHostsFirstByParts);
}

}  // namespace
}  // namespace weft
