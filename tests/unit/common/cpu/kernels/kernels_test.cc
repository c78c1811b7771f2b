// Runs the kernel checks on every table that works on this processor. WEFT_TEST_SEED repeats a run.
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/cpu_features.h"
#include "common/cpu/kernels/kernel_table.h"
#include "common/tensor/dtype.h"
#include "common/tensor/quant/reference_codec.h"
#include "gtest/gtest.h"
#include "tests/support/test_seed.h"
#include "tests/unit/common/cpu/kernels/kernel_checks.h"
#include "tests/unit/common/cpu/kernels/kernel_samples.h"

namespace weft::cpu {
#ifdef WEFT_EMULATED_AVX512
namespace avx512_emulated {
const KernelTable* Table();
}
#endif
namespace {

uint64_t Seed() {
  static const uint64_t seed = TestSeed(20261129);
  return seed;
}

std::vector<const KernelTable*> Tables() {
  std::vector<const KernelTable*> tables = {ScalarKernels()};
  if (IsSupported(InstructionSet::kAvx2)) tables.push_back(Avx2Kernels());
  if (IsSupported(InstructionSet::kAvx512)) tables.push_back(Avx512Kernels());
  if (IsSupported(InstructionSet::kNeon)) tables.push_back(NeonKernels());
#ifdef WEFT_EMULATED_AVX512
  if (IsSupported(InstructionSet::kAvx2)) tables.push_back(avx512_emulated::Table());
#endif
  std::erase(tables, nullptr);
  return tables;
}

class KernelsTest : public testing::TestWithParam<const KernelTable*> {};

INSTANTIATE_TEST_SUITE_P(Isa, KernelsTest, testing::ValuesIn(Tables()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST_P(KernelsTest, EveryEntry_RandomInputs_MatchesFormula) {
  std::cout << "seed " << Seed() << "\n";
  std::vector<KernelCheck> checks = RowChecks();
  for (const KernelCheck& check : VectorChecks()) checks.push_back(check);
  for (const KernelCheck& check : checks) {
    EXPECT_EQ(check.run(*GetParam(), Seed()), "") << check.name << ", seed " << Seed();
  }
}

TEST_P(KernelsTest, Sums_AnyInstructionSet_SameBitsAsScalar) {
  EXPECT_EQ(CheckSameBits(*ScalarKernels(), *GetParam(), Seed()), "") << "seed " << Seed();
}

constexpr DType kDTypes[kFormatCount] = {
    DType::kF32,  DType::kF16,    DType::kBF16,   DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
    DType::kQ5_1, DType::kQ8_0,   DType::kQ2_K,   DType::kQ3_K, DType::kQ4_K, DType::kQ5_K,
    DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4};

TEST_P(KernelsTest, ToFloat_RandomBytes_SameBitsAsCodec) {
  Random random(Seed());
  for (int f = 0; f < kFormatCount; ++f) {
    const FormatInfo& info = InfoOf(static_cast<Format>(f));
    for (int round = 0; round < 50; ++round) {
      const int64_t n = info.elements * random.Int(1, 40);
      // Any bytes at all: scales include infinities and NaN.
      std::vector<uint8_t> row(n / info.elements * info.bytes);
      for (uint8_t& byte : row) byte = static_cast<uint8_t>(random.Next());
      std::vector<float> want(n), got(n);
      ASSERT_TRUE(Dequantize(kDTypes[f], row, absl::MakeSpan(want)).ok());
      GetParam()->row[f].to_float(n, row.data(), got.data());
      for (int64_t e = 0; e < n; ++e) {
        // Which NaN a product of NaN is depends on the operand order.
        if (want[e] != want[e] && got[e] != got[e]) continue;
        ASSERT_TRUE(SameBits(&want[e], &got[e], 1))
            << info.name << " element " << e << ": " << got[e] << ", not " << want[e];
      }
    }
  }
}

// Inputs that stress the rounding: ties, zeros, tiny and large values.
std::vector<float> DifficultValues(int64_t n, Random& random) {
  const int kind = static_cast<int>(random.Int(0, 4));
  std::vector<float> x = random.Activations(n);
  for (float& value : x) {
    if (kind == 1) value = static_cast<float>(random.Int(-127, 127)) * 0.5f;
    if (kind == 2) value = random.Int(0, 3) == 0 ? value : 0.0f;
    if (kind == 3) value *= 1e-6f;
    if (kind == 4) value *= 100.0f;
  }
  return x;
}

TEST_P(KernelsTest, FromFloat_DifficultValues_SameBitsAsCodec) {
  Random random(Seed());
  for (int f = 0; f < kFormatCount; ++f) {
    const FormatInfo& info = InfoOf(static_cast<Format>(f));
    if (GetParam()->row[f].from_float == nullptr) continue;
    for (int round = 0; round < 200; ++round) {
      const int64_t n = info.elements * random.Int(1, 40);
      const std::vector<float> x = DifficultValues(n, random);
      std::vector<uint8_t> want(n / info.elements * info.bytes), got(want.size());
      const absl::Status status = Quantize(kDTypes[f], x, absl::MakeSpan(want));
      ASSERT_TRUE(status.ok()) << status;
      GetParam()->row[f].from_float(n, x.data(), got.data());
      ASSERT_EQ(got, want) << info.name << ", seed " << Seed();
    }
  }
}

}  // namespace
}  // namespace weft::cpu
