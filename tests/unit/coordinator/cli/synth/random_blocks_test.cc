#include "coordinator/cli/synth/random_blocks.h"

#include <cmath>
#include <string>
#include <vector>

#include "common/tensor/quant/block_layout.h"
#include "common/tensor/quant/reference_codec.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using testing::HasSubstr;

constexpr int64_t kElements = 1 << 18;

std::vector<uint8_t> RandomBytes(DType dtype, double deviation, uint64_t seed, int64_t elements) {
  const absl::StatusOr<RandomBlocks> blocks = RandomBlocks::Create(dtype, deviation);
  EXPECT_OK(blocks.status());
  std::vector<uint8_t> bytes(static_cast<size_t>(*RowBytes(dtype, elements)));
  Random random(seed);
  blocks->Fill(random, absl::MakeSpan(bytes));
  return bytes;
}

class RandomBlocksOfType : public testing::TestWithParam<DType> {};

TEST_P(RandomBlocksOfType, Values_HaveMeanZeroAndDeviation) {
  constexpr uint64_t kSeed = 3;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  for (const double deviation : {0.001, 0.02, 1.0}) {
    const std::vector<uint8_t> bytes = RandomBytes(GetParam(), deviation, kSeed, kElements);
    std::vector<float> values(kElements);
    ASSERT_OK(Dequantize(GetParam(), bytes, absl::MakeSpan(values)));
    double sum = 0;
    double squares = 0;
    for (const float value : values) {
      ASSERT_TRUE(std::isfinite(value));
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    EXPECT_NEAR(sum / kElements, 0.0, 0.01 * deviation);
    EXPECT_NEAR(std::sqrt(squares / kElements), deviation, 0.03 * deviation);
  }
}

TEST_P(RandomBlocksOfType, ColumnMeans_AreZero) {
  // If the mean of a position within the rows were not zero, a product with any vector would share
  // a direction.
  constexpr int64_t kColumns = 256;
  const std::vector<uint8_t> bytes = RandomBytes(GetParam(), 1.0, 4, kElements);
  std::vector<float> values(kElements);
  ASSERT_OK(Dequantize(GetParam(), bytes, absl::MakeSpan(values)));
  for (int64_t column = 0; column < kColumns; ++column) {
    double sum = 0;
    constexpr int64_t kTerms = kElements / kColumns;
    for (int64_t i = column; i < kElements; i += kColumns) sum += static_cast<double>(values[i]);
    // Six deviations of a mean of 1024.
    EXPECT_NEAR(sum / kTerms, 0.0, 6.0 / 32.0) << "column " << column;
  }
}

TEST_P(RandomBlocksOfType, EqualSeeds_EqualBytes) {
  const std::vector<uint8_t> first = RandomBytes(GetParam(), 0.02, 5, 4096);
  EXPECT_EQ(first, RandomBytes(GetParam(), 0.02, 5, 4096));
  EXPECT_NE(first, RandomBytes(GetParam(), 0.02, 6, 4096));
}

std::vector<DType> CodecTypes() {
  std::vector<DType> types;
  for (const DTypeInfo& info : AllDTypes()) {
    if (info.codec) types.push_back(info.dtype);
  }
  return types;
}

INSTANTIATE_TEST_SUITE_P(All, RandomBlocksOfType, testing::ValuesIn(CodecTypes()),
                         [](const testing::TestParamInfo<DType>& type) {
                           return std::string(DTypeName(type.param));
                         });

TEST(RandomBlocks, Q8_0_NeverHasMinus128) {
  const std::vector<uint8_t> bytes = RandomBytes(DType::kQ8_0, 0.02, 7, kElements);
  const auto* blocks = reinterpret_cast<const BlockQ8_0*>(bytes.data());
  for (int64_t i = 0; i < kElements / 32; ++i) {
    for (const int8_t q : blocks[i].qs) ASSERT_GE(q, -127);
  }
}

TEST(RandomBlocks, BadArguments_AreErrors) {
  EXPECT_THAT(RandomBlocks::Create(DType::kTQ1_0, 0.02),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("TQ1_0")));
  for (const double deviation : {0.0, -1.0, 1e-9, 1e9, std::nan("")}) {
    EXPECT_THAT(RandomBlocks::Create(DType::kQ6_K, deviation),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("deviation")));
  }
}

}  // namespace
}  // namespace weft
