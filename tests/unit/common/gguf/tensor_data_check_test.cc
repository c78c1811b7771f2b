#include "common/gguf/tensor_data_check.h"

#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::vector<uint8_t> Blocks(DType dtype, int count) {
  return std::vector<uint8_t>(count * GetDTypeInfo(dtype).block_bytes, 0);
}

TEST(TensorDataCheck, FiniteExtremes_Pass) {
  std::vector<uint8_t> f16 = {0xFF, 0x7B, 0xFF, 0xFB};  // largest and smallest finite half
  EXPECT_OK(CheckTensorData(DType::kF16, f16));
  std::vector<uint8_t> mxfp4 = Blocks(DType::kMXFP4, 2);
  mxfp4[17] = 254;
  EXPECT_OK(CheckTensorData(DType::kMXFP4, mxfp4));
  EXPECT_OK(CheckTensorData(DType::kF32, {}));
}

// Where a number with all exponent bits set is an error, by the byte layouts of the spec.
TEST(TensorDataCheck, InfinityAnywhere_IsFoundInScalesOnly) {
  const std::map<DType, std::set<size_t>> halves = {
      {DType::kF16, {0}},     {DType::kQ4_0, {0}},      {DType::kQ4_1, {0, 2}},
      {DType::kQ5_0, {0}},    {DType::kQ5_1, {0, 2}},   {DType::kQ8_0, {0}},
      {DType::kQ8_1, {0, 2}}, {DType::kQ2_K, {80, 82}}, {DType::kQ3_K, {108}},
      {DType::kQ4_K, {0, 2}}, {DType::kQ5_K, {0, 2}},   {DType::kQ6_K, {208}},
      {DType::kIQ4_NL, {0}},  {DType::kIQ4_XS, {0}}};
  for (const auto& [dtype, offsets] : halves) {
    const size_t block_bytes = GetDTypeInfo(dtype).block_bytes;
    for (size_t offset = 0; offset + 2 <= block_bytes; offset += 2) {
      std::vector<uint8_t> bytes = Blocks(dtype, 3);
      const size_t at = 2 * block_bytes + offset;
      bytes[at + 1] = 0x7C;
      const absl::Status status = CheckTensorData(dtype, bytes);
      if (offsets.contains(offset)) {
        EXPECT_THAT(status,
                    StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("block 2 (byte")))
            << DTypeName(dtype) << " " << offset;
      } else {
        EXPECT_OK(status) << DTypeName(dtype) << " " << offset;
      }
    }
  }
}

TEST(TensorDataCheck, PlainTypesAndMxfp4_NameTheOffender) {
  std::vector<uint8_t> f32 = Blocks(DType::kF32, 3);
  const uint32_t nan = 0xFFC00000;
  std::memcpy(f32.data() + 4, &nan, 4);
  EXPECT_THAT(CheckTensorData(DType::kF32, f32), StatusIs(absl::StatusCode::kInvalidArgument,
                                                          "block 1 (byte 4): value is not finite"));
  EXPECT_THAT(CheckTensorData(DType::kBF16, std::vector<uint8_t>{0x80, 0x7F}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not finite")));
  EXPECT_THAT(CheckTensorData(DType::kF64, std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 0xF0, 0x7F}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not finite")));
  std::vector<uint8_t> mxfp4 = Blocks(DType::kMXFP4, 2);
  mxfp4[17] = 255;
  EXPECT_THAT(CheckTensorData(DType::kMXFP4, mxfp4),
              StatusIs(absl::StatusCode::kInvalidArgument, "block 1 (byte 17): e is not finite"));
}

TEST(TensorDataCheck, PartOfABlock_IsAnError) {
  EXPECT_THAT(CheckTensorData(DType::kQ8_0, std::vector<uint8_t>(35)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "35 bytes are not a whole number of Q8_0 blocks of 34"));
}

}  // namespace
}  // namespace weft
