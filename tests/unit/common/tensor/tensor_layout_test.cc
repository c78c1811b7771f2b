#include "common/tensor/tensor_layout.h"

#include <set>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int64_t kHuge = int64_t{1} << 62;

TEST(DType, Ids_FindTheirRow) {
  std::set<int32_t> ids;
  for (const DTypeInfo& row : AllDTypes()) {
    EXPECT_EQ(&GetDTypeInfo(row.dtype), &row);
    EXPECT_EQ(DTypeFromGgufId(row.gguf_id), row.dtype);
    EXPECT_EQ(DTypeFromName(row.name), row.dtype);
    EXPECT_TRUE(ids.insert(row.gguf_id).second) << row.name;
    EXPECT_EQ(row.quantized, row.block_elements > 1);
  }
  EXPECT_EQ(ids.size(), static_cast<size_t>(kDTypeCount));
  EXPECT_EQ(DTypeFromName("q4_k"), DType::kQ4_K);
  EXPECT_FALSE(DTypeFromName("Q4_M").has_value());
  // Unknown, removed, and beyond 32 bits where the low ones would be known.
  for (const int64_t id : {int64_t{-1}, int64_t{4}, int64_t{5}, int64_t{31}, int64_t{33},
                           int64_t{36}, int64_t{41}, int64_t{99}, int64_t{1} << 32}) {
    EXPECT_FALSE(DTypeFromGgufId(id).has_value()) << id;
  }
}

TEST(DType, RowBytes_CountWholeBlocks) {
  EXPECT_EQ(RowBytes(DType::kF32, 7), 28);
  EXPECT_EQ(RowBytes(DType::kQ4_0, 64), 36);
  EXPECT_EQ(RowBytes(DType::kQ6_K, 512), 420);
  EXPECT_EQ(RowBytes(DType::kQ6_K, 0), 0);
  EXPECT_FALSE(RowBytes(DType::kQ4_0, 33).has_value());
  EXPECT_FALSE(RowBytes(DType::kF32, -1).has_value());
  EXPECT_FALSE(RowBytes(DType::kF32, kHuge).has_value());
}

TEST(TensorLayout, Packed_HasStridesWithoutGaps) {
  ASSERT_OK_AND_ASSIGN(const TensorLayout layout, PackedLayout(DType::kQ8_0, {64, 3, 5, 2}));
  EXPECT_EQ(layout.nb, (Extents{34, 68, 204, 1020}));
  EXPECT_EQ(ElementCount(layout), 1920);
  EXPECT_EQ(RowCount(layout), 30);
  EXPECT_EQ(RowByteSize(layout), 68);
  EXPECT_EQ(ByteExtent(layout), 2040);
  EXPECT_TRUE(IsContiguous(layout));
  EXPECT_TRUE(HasContiguousRows(layout));
}

TEST(TensorLayout, Packed_RefusesWhatHasNoSize) {
  EXPECT_THAT(PackedLayout(DType::kF32, {4, -1, 1, 1}), StatusIs(kInvalid, HasSubstr("negative")));
  EXPECT_THAT(PackedLayout(DType::kQ4_K, {128, 1, 1, 1}),
              StatusIs(kInvalid,
                       "Q4_K tensor of extents [128]: row is not a multiple of the type's "
                       "block"));
  EXPECT_THAT(PackedLayout(DType::kI8, {4, kHuge, 1, 1}),
              StatusIs(kInvalid, HasSubstr("too many elements")));
  EXPECT_THAT(PackedLayout(DType::kF32, {1, kHuge, 1, 1}),
              StatusIs(kInvalid, HasSubstr("too many elements")));
  EXPECT_THAT(PackedLayout(DType::kF32, {1, 1, 1, kHuge}),
              StatusIs(kInvalid, HasSubstr("too many elements")));
  ASSERT_OK_AND_ASSIGN(const TensorLayout empty, PackedLayout(DType::kF32, {0, 3, 1, 1}));
  EXPECT_EQ(ByteExtent(empty), 0);
}

TEST(TensorLayout, Contiguous_IgnoresStridesOfSingleExtents) {
  TensorLayout layout = *PackedLayout(DType::kF32, {4, 1, 3, 1});
  layout.nb[1] = 999;
  layout.nb[3] = 7;
  EXPECT_TRUE(IsContiguous(layout));
  layout.nb[2] = 32;
  EXPECT_FALSE(IsContiguous(layout));
  layout = *PackedLayout(DType::kF32, {4, 3, 1, 1});
  layout.nb[0] = 8;
  EXPECT_FALSE(IsContiguous(layout));
  EXPECT_FALSE(HasContiguousRows(layout));
}

// ByteExtent against the largest address of any element.
TEST(TensorLayout, ByteExtent_EndsAfterTheLastElement) {
  Random random(TestSeed(11));
  for (int round = 0; round < 1000; ++round) {
    TensorLayout layout;
    for (int i = 0; i < 4; ++i) {
      layout.ne[i] = random.Between(1, 4);
      layout.nb[i] = random.Between(0, 50);
    }
    int64_t last = 0;
    for (int64_t i = 0; i < ElementCount(layout); ++i) {
      int64_t rest = i;
      int64_t address = 0;
      for (int d = 0; d < 4; ++d) {
        address += rest % layout.ne[d] * layout.nb[d];
        rest /= layout.ne[d];
      }
      last = std::max(last, address);
    }
    EXPECT_EQ(ByteExtent(layout), last + 4);
  }
}

TEST(TensorLayout, ByteExtent_ReportsOverflowAndNegativeStrides) {
  TensorLayout layout = *PackedLayout(DType::kF32, {4, 4, 4, 4});
  layout.nb[3] = kHuge;
  EXPECT_FALSE(ByteExtent(layout).has_value());
  layout.nb[3] = -4;
  EXPECT_FALSE(ByteExtent(layout).has_value());
  layout.ne[2] = 0;
  EXPECT_EQ(ByteExtent(layout), 0);
}

TEST(TensorLayout, Broadcast_NeedsWholeRepeats) {
  EXPECT_TRUE(CanBroadcast({1, 2, 1, 1}, {5, 4, 3, 1}));
  EXPECT_TRUE(CanBroadcast({3, 2, 1, 1}, {3, 2, 1, 1}));
  EXPECT_FALSE(CanBroadcast({2, 1, 1, 1}, {3, 1, 1, 1}));
  EXPECT_FALSE(CanBroadcast({4, 1, 1, 1}, {2, 1, 1, 1}));
  EXPECT_FALSE(CanBroadcast({0, 1, 1, 1}, {2, 1, 1, 1}));
  EXPECT_FALSE(CanBroadcast({2, 1, 1, 1}, {0, 1, 1, 1}));
  EXPECT_TRUE(CanBroadcast({0, 1, 1, 1}, {0, 2, 1, 1}));
}

TEST(TensorLayout, Text_LeavesOutTrailingOnes) {
  EXPECT_EQ(LayoutText(*PackedLayout(DType::kF32, {48, 7, 1, 1})), "F32 [48, 7]");
  EXPECT_EQ(ExtentsText({1, 1, 1, 1}), "[1]");
  EXPECT_EQ(ExtentsText({2, 1, 3, 1}), "[2, 1, 3]");
}

}  // namespace
}  // namespace weft
