#include "coordinator/cli/synth/random_blocks.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "common/tensor/quant/block_codec.h"
#include "common/tensor/quant/reference_codec.h"

namespace weft {
namespace {

void FillBits(Random& random, void* bytes, size_t size) {
  auto* out = static_cast<uint8_t*>(bytes);
  for (; size >= 8; size -= 8, out += 8) {
    const uint64_t bits = random.Next();
    std::memcpy(out, &bits, 8);
  }
  if (size > 0) {
    const uint64_t bits = random.Next();
    std::memcpy(out, &bits, size);
  }
}

// Codes and sub-block scales. Where codes do not lie evenly about zero, the sign of a scale is
// random or a minimum equal to the scale takes the mean away: else all weights would share a
// direction, and layer after layer amplify it.

template <typename Block>
void RandomCodes(Random& random, Block& block) {  // formats without anything but codes
  FillBits(random, block.qs, sizeof(block.qs));
  if constexpr (requires { block.qh; }) FillBits(random, block.qh, sizeof(block.qh));
}

void RandomCodes(Random& random, BlockQ8_0& block) {
  FillBits(random, block.qs, sizeof(block.qs));
  for (int8_t& q : block.qs) q = q == -128 ? int8_t{-127} : q;  // no quantiser writes -128
}

void RandomCodes(Random& random, BlockQ2_K& block) {
  FillBits(random, block.qs, sizeof(block.qs));
  uint64_t bits = random.Next();
  for (uint8_t& scale : block.scales) {
    const uint8_t value = static_cast<uint8_t>(8 + (bits & 7));
    scale = static_cast<uint8_t>(value | value << 4);
    bits >>= 3;
  }
}

void RandomCodes(Random& random, BlockQ3_K& block) {
  FillBits(random, block.qs, sizeof(block.qs));
  FillBits(random, block.hmask, sizeof(block.hmask));
  uint64_t bits = random.Next();
  std::array<int, 16> scales;
  for (int& scale : scales) {
    const int magnitude = 16 + static_cast<int>(bits & 7);
    scale = (bits & 8) != 0 ? -magnitude : magnitude;
    bits >>= 4;
  }
  PackQ3Scales(scales, block.scales);
}

std::array<ScaleMin, 8> RandomScaleMins(Random& random) {
  uint64_t bits = random.Next();
  std::array<ScaleMin, 8> pairs;
  for (ScaleMin& pair : pairs) {
    pair.scale = 32 + static_cast<int>(bits & 31);
    pair.minimum = pair.scale;
    bits >>= 5;
  }
  return pairs;
}

void RandomCodes(Random& random, BlockQ4_K& block) {
  FillBits(random, block.qs, sizeof(block.qs));
  PackScaleMins(RandomScaleMins(random), block.scales);
}

void RandomCodes(Random& random, BlockQ5_K& block) {
  FillBits(random, block.qs, sizeof(block.qs));
  FillBits(random, block.qh, sizeof(block.qh));
  PackScaleMins(RandomScaleMins(random), block.scales);
}

void RandomCodes(Random& random, BlockQ6_K& block) {
  FillBits(random, block.ql, sizeof(block.ql));
  FillBits(random, block.qh, sizeof(block.qh));
  uint64_t bits = random.Next();
  for (int8_t& scale : block.scales) {
    const int magnitude = 32 + static_cast<int>(bits & 7);
    scale = static_cast<int8_t>((bits & 8) != 0 ? -magnitude : magnitude);
    bits >>= 4;
  }
}

void RandomCodes(Random& random, BlockIQ4_XS& block) {
  FillBits(random, block.qs, sizeof(block.qs));
  FillBits(random, block.scales_l, sizeof(block.scales_l));
  block.scales_h = 0;
  uint64_t bits = random.Next();
  for (int i = 0; i < 8; ++i) {
    // The two high bits make it -32..-17 or 16..31.
    block.scales_h = static_cast<uint16_t>(block.scales_h | ((bits & 1) != 0 ? 3 : 0) << (2 * i));
    bits >>= 1;
  }
}

// By how much the offset of an affine format exceeds its scale, so that the mean of the codes maps
// to zero.
template <typename Block>
constexpr double kOffset = 0;
template <>
constexpr double kOffset<BlockQ4_1> = -7.5;
template <>
constexpr double kOffset<BlockQ5_1> = -15.5;
template <>
constexpr double kOffset<BlockQ2_K> = 1.5;
template <>
constexpr double kOffset<BlockQ4_K> = 7.5;
template <>
constexpr double kOffset<BlockQ5_K> = 15.5;

template <typename Block>
void SetScale(uint16_t d, uint16_t offset, Block& block) {
  block.d = d;
  if constexpr (requires { block.m; }) block.m = offset;
  if constexpr (requires { block.dmin; }) block.dmin = offset;
}

// Formats whose d carries the random sign.
template <typename Block>
constexpr bool kSignedScale =
    std::is_same_v<Block, BlockQ4_0> || std::is_same_v<Block, BlockQ5_0> ||
    std::is_same_v<Block, BlockIQ4_NL>;

// Calls `visitor` with the block struct of a type whose scale is an F16; false if `dtype` is
// another.
template <typename Visitor>
bool VisitScaledType(DType dtype, const Visitor& visitor) {
  switch (dtype) {
    case DType::kQ4_0:
      visitor(std::type_identity<BlockQ4_0>());
      return true;
    case DType::kQ4_1:
      visitor(std::type_identity<BlockQ4_1>());
      return true;
    case DType::kQ5_0:
      visitor(std::type_identity<BlockQ5_0>());
      return true;
    case DType::kQ5_1:
      visitor(std::type_identity<BlockQ5_1>());
      return true;
    case DType::kQ8_0:
      visitor(std::type_identity<BlockQ8_0>());
      return true;
    case DType::kQ2_K:
      visitor(std::type_identity<BlockQ2_K>());
      return true;
    case DType::kQ3_K:
      visitor(std::type_identity<BlockQ3_K>());
      return true;
    case DType::kQ4_K:
      visitor(std::type_identity<BlockQ4_K>());
      return true;
    case DType::kQ5_K:
      visitor(std::type_identity<BlockQ5_K>());
      return true;
    case DType::kQ6_K:
      visitor(std::type_identity<BlockQ6_K>());
      return true;
    case DType::kIQ4_NL:
      visitor(std::type_identity<BlockIQ4_NL>());
      return true;
    case DType::kIQ4_XS:
      visitor(std::type_identity<BlockIQ4_XS>());
      return true;
    default:
      return false;
  }
}

// Root mean square of the values under d = 1, from a sample of 65536 or more.
template <typename Block>
double UnitDeviation() {
  Random random(1);
  double sum = 0;
  std::array<float, kBlockElements<Block>> values;
  constexpr int kBlocks = 2048;
  for (int i = 0; i < kBlocks; ++i) {
    Block block;
    RandomCodes(random, block);
    SetScale(FloatToHalf(1.0f), FloatToHalf(static_cast<float>(kOffset<Block>)), block);
    DecodeBlock(block, values.data());
    for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(sum / (static_cast<double>(kBlocks) * kBlockElements<Block>));
}

// Scales vary evenly by a quarter up and down; this is the root mean square of the factor, sqrt(1 +
// 1 / 48).
constexpr double kSpreadDeviation = 1.010362971;

void FillMxfp4(Random& random, uint8_t exponent, uint32_t larger_exponents,
               absl::Span<uint8_t> bytes) {
  auto* blocks = reinterpret_cast<BlockMXFP4*>(bytes.data());
  for (size_t i = 0; i < bytes.size() / sizeof(BlockMXFP4); ++i) {
    FillBits(random, blocks[i].qs, sizeof(blocks[i].qs));
    const bool larger = (random.Next() & 0xFFFF) < larger_exponents;
    blocks[i].e = static_cast<uint8_t>(exponent + (larger ? 1 : 0));
  }
}

// Nearly normal: the sum of four uniform numbers of 16 bits, at most 3.5 deviations from zero.
void FillPlain(Random& random, DType dtype, double deviation, absl::Span<uint8_t> bytes) {
  const size_t width = static_cast<size_t>(GetDTypeInfo(dtype).block_bytes);
  const size_t count = bytes.size() / width;
  const float factor = static_cast<float>(deviation / (65536.0 / std::sqrt(3.0)));
  uint8_t* out = bytes.data();
  for (size_t i = 0; i < count; ++i, out += width) {
    const uint64_t bits = random.Next();
    const auto sum = static_cast<int32_t>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) +
                                          (bits >> 32 & 0xFFFF) + (bits >> 48));
    const float value = static_cast<float>(sum - 131070) * factor;
    if (dtype == DType::kF32) {
      std::memcpy(out, &value, sizeof(value));
    } else {
      const uint16_t half = dtype == DType::kF16 ? FloatToHalf(value) : FloatToBFloat16(value);
      std::memcpy(out, &half, sizeof(half));
    }
  }
}

}  // namespace

absl::StatusOr<RandomBlocks> RandomBlocks::Create(DType dtype, double deviation) {
  if (!GetDTypeInfo(dtype).codec) {
    return absl::UnimplementedError(absl::StrCat("no codec for type ", AbslView(DTypeName(dtype))));
  }
  if (!(deviation >= 5e-4 && deviation <= 100.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("standard deviation ", deviation, " is not within 5e-4 to 100"));
  }
  RandomBlocks result;
  result.dtype_ = dtype;
  result.deviation_ = deviation;
  if (dtype == DType::kMXFP4) {
    // Half of the codes' mean square is (0 + .25 + 1 + 2.25 + 4 + 9 + 16 + 36) / 8. The mean square
    // of a mix of two neighbouring exponents is linear in the share of the larger, which has four
    // times the square.
    const double wanted = deviation * deviation / (68.5 / 8.0);
    const int exponent = static_cast<int>(std::floor(std::log2(wanted) / 2.0));
    const double share = (wanted / std::exp2(2.0 * exponent) - 1.0) / 3.0;
    result.exponent_ = static_cast<uint8_t>(exponent + 127);
    result.larger_exponents_ = static_cast<uint32_t>(share * 65536.0);
    return result;
  }
  VisitScaledType(dtype, [&]<typename Block>(std::type_identity<Block>) {
    const double unit = deviation / (UnitDeviation<Block>() * kSpreadDeviation);
    Random random(2);
    for (Scale& scale : result.scales_) {
      const double d = unit * (0.75 + 0.5 * random.Uniform());
      scale.d = FloatToHalf(static_cast<float>(d));
      scale.offset = FloatToHalf(static_cast<float>(d * kOffset<Block>));
    }
  });
  return result;
}

void RandomBlocks::Fill(Random& random, absl::Span<uint8_t> bytes) const {
  if (dtype_ == DType::kMXFP4) {
    FillMxfp4(random, exponent_, larger_exponents_, bytes);
    return;
  }
  const bool scaled = VisitScaledType(dtype_, [&]<typename Block>(std::type_identity<Block>) {
    auto* blocks = reinterpret_cast<Block*>(bytes.data());
    for (size_t i = 0; i < bytes.size() / sizeof(Block); ++i) {
      RandomCodes(random, blocks[i]);
      const uint64_t bits = random.Next();
      const Scale& scale = scales_[bits & 0xFF];
      const uint16_t sign = kSignedScale<Block> ? static_cast<uint16_t>(bits >> 8 & 0x8000) : 0;
      SetScale(static_cast<uint16_t>(scale.d | sign), scale.offset, blocks[i]);
    }
  });
  if (!scaled) FillPlain(random, dtype_, deviation_, bytes);
}

}  // namespace weft
