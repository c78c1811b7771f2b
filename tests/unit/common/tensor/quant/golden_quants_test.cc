// The codec against tests/data/quants: a 4 x 512 matrix in fifteen types with the values that its
// blocks stand for and the products with a vector (index.json there says which library wrote what).
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/tensor/quant/reference_codec.h"
#include "gtest/gtest.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

constexpr int kRows = 4;
constexpr int kColumns = 512;

// From index.json, where numbers have fewer digits.
struct Golden {
  DType dtype;
  bool exact_blocks;      // the quantiser is specified to the byte
  double nmse;            // of the library's blocks against source.f32
  double product[kRows];  // with x.f32, summed in double
};

constexpr Golden kGoldens[] = {
    {DType::kF16, true, 3.79e-08, {-7.56335298186, 0.797975304832, 119.49888747, -8.97217100184}},
    {DType::kBF16, true, 2.25e-06, {-7.56265260578, 0.798110992677, 119.373564505, -9.00475842735}},
    {DType::kQ4_0, true, 0.00763, {-11.0784478679, 0.735487111554, 105.905388318, -13.0033131197}},
    {DType::kQ4_1, true, 0.00583, {-7.92064679481, 0.816329089128, 142.419069947, -2.01674102043}},
    {DType::kQ5_0, true, 0.00221, {-8.20894924428, 0.772635882046, 119.931237946, -10.6384195778}},
    {DType::kQ5_1, true, 0.00136, {-7.87546210955, 0.804734975559, 121.744889477, -10.1323174696}},
    {DType::kQ8_0, true, 3.58e-05, {-7.58956037096, 0.798003405785, 119.591061793, -9.97836468242}},
    {DType::kMXFP4, true, 0.0153, {-7.6812813147, 0.807149091263, 114.567376608, -0.518793064635}},
    {DType::kQ2_K, false, 0.0775, {-10.9218387774, 0.755808534752, 83.7459546221, -17.4891082539}},
    {DType::kQ3_K, false, 0.0217, {-5.31215405729, 0.866113827002, 196.254710219, -3.02119468767}},
    {DType::kQ4_K, false, 0.00538, {-8.06261150347, 0.795153756456, 117.534906587, -5.61702082146}},
    {DType::kQ5_K, false, 0.00126, {-8.0916231674, 0.818291870547, 124.656255805, -8.79556857029}},
    {DType::kQ6_K,
     false,
     0.000365,
     {-7.34964697933, 0.784750698854, 116.875347288, -8.20134532703}},
    {DType::kIQ4_NL,
     false,
     0.00623,
     {-7.37291094786, 0.849691481055, 125.595605228, -7.49844768753}},
    {DType::kIQ4_XS,
     false,
     0.00637,
     {-6.70691904665, 0.804306517925, 126.094442649, -3.71781023003}},
};

std::vector<uint8_t> ReadBytes(const std::string& name) {
  const char* data = std::getenv("WEFT_TEST_DATA");
  const std::string path = std::string(data != nullptr ? data : "tests/data") + "/quants/" + name;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<float> ReadFloats(const std::string& name) {
  const std::vector<uint8_t> bytes = ReadBytes(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

class GoldenQuants : public testing::TestWithParam<Golden> {
 protected:
  std::string name() const { return std::string(DTypeName(GetParam().dtype)); }
};

TEST_P(GoldenQuants, Dequantize_GivesSameBits) {
  const std::vector<uint8_t> blocks = ReadBytes(name() + ".bin");
  const std::vector<float> wanted = ReadFloats(name() + ".f32");
  ASSERT_EQ(wanted.size(), static_cast<size_t>(kRows * kColumns));
  std::vector<float> values(wanted.size());
  ASSERT_OK(Dequantize(GetParam().dtype, blocks, absl::MakeSpan(values)));
  EXPECT_EQ(std::memcmp(values.data(), wanted.data(), wanted.size() * sizeof(float)), 0);
}

TEST_P(GoldenQuants, Dequantize_ProductWithVector) {
  const std::vector<uint8_t> blocks = ReadBytes(name() + ".bin");
  const std::vector<float> x = ReadFloats("x.f32");
  ASSERT_EQ(x.size(), static_cast<size_t>(kColumns));
  std::vector<float> values(kRows * kColumns);
  ASSERT_OK(Dequantize(GetParam().dtype, blocks, absl::MakeSpan(values)));
  double largest = 0;
  for (const double entry : GetParam().product) largest = std::max(largest, std::fabs(entry));
  for (int row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int i = 0; i < kColumns; ++i) {
      sum += static_cast<double>(values[row * kColumns + i]) * static_cast<double>(x[i]);
    }
    EXPECT_NEAR(sum, GetParam().product[row], 1e-5 * largest) << "row " << row;
  }
}

TEST_P(GoldenQuants, Quantize_SameBlocksOrNoWorse) {
  const std::vector<float> source = ReadFloats("source.f32");
  const std::vector<uint8_t> wanted = ReadBytes(name() + ".bin");
  ASSERT_EQ(source.size(), static_cast<size_t>(kRows * kColumns));
  std::vector<uint8_t> blocks(wanted.size());
  ASSERT_OK(Quantize(GetParam().dtype, source, absl::MakeSpan(blocks)));
  if (GetParam().exact_blocks) {
    EXPECT_EQ(blocks, wanted);
  }
  std::vector<float> values(source.size());
  ASSERT_OK(Dequantize(GetParam().dtype, blocks, absl::MakeSpan(values)));
  const double nmse = NormalizedError(values, source);
  // The K and IQ searches do better than the library; three digits of the index cost the simple
  // types half a percent.
  EXPECT_LE(nmse, GetParam().nmse * (GetParam().exact_blocks ? 1.005 : 1.0));
}

INSTANTIATE_TEST_SUITE_P(AllTypes, GoldenQuants, testing::ValuesIn(kGoldens),
                         [](const testing::TestParamInfo<Golden>& row) {
                           return std::string(DTypeName(row.param.dtype));
                         });

TEST(GoldenTable, Table_CoversEveryCodecType) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec || info.dtype == DType::kF32) continue;
    bool found = false;
    for (const Golden& golden : kGoldens) found = found || golden.dtype == info.dtype;
    EXPECT_TRUE(found) << info.name;
  }
}

}  // namespace
}  // namespace weft
