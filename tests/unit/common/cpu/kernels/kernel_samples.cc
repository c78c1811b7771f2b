#include "tests/unit/common/cpu/kernels/kernel_samples.h"

#include <algorithm>
#include <cmath>

#include "common/tensor/quant/block_layout.h"

namespace weft::cpu {
namespace {

constexpr FormatInfo kInfo[kFormatCount] = {
    {"F32", 1, 4},      {"F16", 1, 2},      {"BF16", 1, 2},       {"Q4_0", 32, 18},
    {"Q4_1", 32, 20},   {"Q5_0", 32, 22},   {"Q5_1", 32, 24},     {"Q8_0", 32, 34},
    {"Q2_K", 256, 84},  {"Q3_K", 256, 110}, {"Q4_K", 256, 144},   {"Q5_K", 256, 176},
    {"Q6_K", 256, 210}, {"IQ4_NL", 32, 18}, {"IQ4_XS", 256, 136}, {"MXFP4", 32, 17},
};

constexpr int kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr double kE2M1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

int Nibble(const uint8_t* qs, int element) {  // low half first, then high half
  return element < 16 ? qs[element] & 15 : qs[element - 16] >> 4;
}
int BitOf(const uint8_t* bytes, int bit) { return (bytes[bit / 8] >> (bit % 8)) & 1; }

template <typename Block>
double SimpleWeight(const Block& b, int e) {
  const double d = HalfValue(b.d);
  if constexpr (std::is_same_v<Block, BlockQ4_0>) return d * (Nibble(b.qs, e) - 8);
  if constexpr (std::is_same_v<Block, BlockQ4_1>) return d * Nibble(b.qs, e) + HalfValue(b.m);
  if constexpr (std::is_same_v<Block, BlockQ5_0>) {
    return d * ((Nibble(b.qs, e) | BitOf(b.qh, e) << 4) - 16);
  }
  if constexpr (std::is_same_v<Block, BlockQ5_1>) {
    return d * (Nibble(b.qs, e) | BitOf(b.qh, e) << 4) + HalfValue(b.m);
  }
  if constexpr (std::is_same_v<Block, BlockQ8_0>) return d * b.qs[e];
  if constexpr (std::is_same_v<Block, BlockIQ4_NL>) return d * kIq4[Nibble(b.qs, e)];
}

double Weight(const BlockMXFP4& b, int e) {
  const int code = Nibble(b.qs, e);
  return (code < 8 ? kE2M1[code] : -kE2M1[code - 8]) * std::ldexp(1.0, b.e - 127);
}

// Two-bit part of Q2_K and Q3_K.
int TwoBits(const uint8_t* qs, int e) {
  return (qs[e / 128 * 32 + e % 32] >> (e % 128 / 32 * 2)) & 3;
}

double Weight(const BlockQ2_K& b, int e) {
  const uint8_t s = b.scales[e / 16];
  return HalfValue(b.d) * (s & 15) * TwoBits(b.qs, e) - HalfValue(b.dmin) * (s >> 4);
}

double Weight(const BlockQ3_K& b, int e) {
  const int j = e / 16;
  const int low = j < 8 ? b.scales[j] & 15 : b.scales[j - 8] >> 4;
  const int high = (b.scales[8 + j % 4] >> (2 * (j / 4))) & 3;
  const int scale = (low | high << 4) - 32;
  const int bit = (b.hmask[e % 32] >> (e / 32)) & 1;
  return HalfValue(b.d) * scale * (TwoBits(b.qs, e) - (bit != 0 ? 0 : 4));
}

template <typename Block>
double SixBitWeight(const Block& b, int e, int code) {
  const int j = e / 32;
  const uint8_t* s = b.scales;
  const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
  const int min = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
  return HalfValue(b.d) * scale * code - HalfValue(b.dmin) * min;
}
int FourBits(const uint8_t* qs, int e) {
  return (qs[e / 64 * 32 + e % 32] >> (e % 64 / 32 * 4)) & 15;
}

double Weight(const BlockQ4_K& b, int e) { return SixBitWeight(b, e, FourBits(b.qs, e)); }
double Weight(const BlockQ5_K& b, int e) {
  return SixBitWeight(b, e, FourBits(b.qs, e) | ((b.qh[e % 32] >> (e / 32)) & 1) << 4);
}

double Weight(const BlockQ6_K& b, int e) {
  const int half = e / 128, part = e % 128 / 32, l = e % 32;
  const uint8_t low = b.ql[64 * half + (part % 2) * 32 + l];
  const int high = (b.qh[32 * half + l] >> (2 * part)) & 3;
  const int code = (part < 2 ? low & 15 : low >> 4) + 16 * high - 32;
  const int scale = b.scales[e / 16];
  return HalfValue(b.d) * scale * code;
}

double Weight(const BlockIQ4_XS& b, int e) {
  const int s = e / 32;
  const int code = ((b.scales_l[s / 2] >> (4 * (s % 2))) & 15) | ((b.scales_h >> (2 * s)) & 3) << 4;
  return HalfValue(b.d) * (code - 32) * kIq4[Nibble(b.qs + 16 * s, e % 32)];
}

template <typename Block>
Block BlockAt(const uint8_t* row, int64_t index, int elements) {
  Block block;
  std::memcpy(&block, row + index / elements * static_cast<int64_t>(sizeof(Block)), sizeof(Block));
  return block;
}
template <typename Block>
double SimpleAt(const uint8_t* row, int64_t index) {
  return SimpleWeight(BlockAt<Block>(row, index, 32), static_cast<int>(index % 32));
}
template <typename Block>
double SuperAt(const uint8_t* row, int64_t index) {
  return Weight(BlockAt<Block>(row, index, 256), static_cast<int>(index % 256));
}

uint16_t RandomScale(bool extreme, Random& random) {
  if (!extreme) {  // around 2^-7
    return static_cast<uint16_t>((random.Int(0, 1) << 15) | (random.Int(5, 9) << 10) |
                                 random.Int(0, 1023));
  }
  constexpr uint16_t kScales[] = {0, 0x8000, 1, 0x83FF, 0x7BFF, 0xFBFF, 0x3C00, 0x0400};
  return kScales[random.Int(0, 7)];
}

void SetScales(Format format, uint8_t* block, bool extreme, Random& random) {
  const auto set = [&](int at) {
    const uint16_t scale = RandomScale(extreme, random);
    std::memcpy(block + at, &scale, 2);
  };
  switch (format) {
    case kFormatF32: {
      const float value = random.Activation();
      std::memcpy(block, &value, 4);
      break;
    }
    case kFormatBF16: {
      const float value = random.Activation();
      std::memcpy(block, reinterpret_cast<const uint8_t*>(&value) + 2, 2);
      break;
    }
    case kFormatQ4_1:
    case kFormatQ5_1:
    case kFormatQ4_K:
    case kFormatQ5_K:
      set(0);
      set(2);
      break;
    case kFormatQ2_K:
      set(80);
      set(82);
      break;
    case kFormatQ3_K:
      set(108);
      break;
    case kFormatQ6_K:
      set(208);
      break;
    case kFormatMXFP4:
      block[0] = static_cast<uint8_t>(extreme ? random.Int(0, 200) : random.Int(115, 125));
      break;
    default:
      set(0);
  }
}

}  // namespace

uint64_t Random::Next() {
  state_ += 0x9E3779B97F4A7C15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
int64_t Random::Int(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
}
double Random::Uniform(double low, double high) {
  return low + (high - low) * static_cast<double>(Next() >> 11) * 0x1p-53;
}
float Random::Activation() {
  const double value = Uniform(-1, 1);
  return static_cast<float>(Int(0, 15) == 0 ? 8 * value : value);
}
std::vector<float> Random::Activations(int64_t n) {
  std::vector<float> x(static_cast<size_t>(n));
  for (float& value : x) value = Activation();
  return x;
}

const FormatInfo& InfoOf(Format format) { return kInfo[format]; }

double HalfValue(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const double mantissa = half & 1023;
  const double magnitude =
      exponent == 0 ? mantissa * 0x1p-24 : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

double WeightAt(Format format, const uint8_t* row, int64_t index) {
  switch (format) {
    case kFormatF32: {
      float value;
      std::memcpy(&value, row + 4 * index, 4);
      return value;
    }
    case kFormatF16: {
      uint16_t half;
      std::memcpy(&half, row + 2 * index, 2);
      return HalfValue(half);
    }
    case kFormatBF16: {
      uint32_t bits = 0;
      std::memcpy(reinterpret_cast<uint8_t*>(&bits) + 2, row + 2 * index, 2);
      float value;
      std::memcpy(&value, &bits, 4);
      return value;
    }
    case kFormatQ4_0:
      return SimpleAt<BlockQ4_0>(row, index);
    case kFormatQ4_1:
      return SimpleAt<BlockQ4_1>(row, index);
    case kFormatQ5_0:
      return SimpleAt<BlockQ5_0>(row, index);
    case kFormatQ5_1:
      return SimpleAt<BlockQ5_1>(row, index);
    case kFormatQ8_0:
      return SimpleAt<BlockQ8_0>(row, index);
    case kFormatQ2_K:
      return SuperAt<BlockQ2_K>(row, index);
    case kFormatQ3_K:
      return SuperAt<BlockQ3_K>(row, index);
    case kFormatQ4_K:
      return SuperAt<BlockQ4_K>(row, index);
    case kFormatQ5_K:
      return SuperAt<BlockQ5_K>(row, index);
    case kFormatQ6_K:
      return SuperAt<BlockQ6_K>(row, index);
    case kFormatIQ4_NL:
      return SimpleAt<BlockIQ4_NL>(row, index);
    case kFormatIQ4_XS:
      return SuperAt<BlockIQ4_XS>(row, index);
    case kFormatMXFP4:
      return Weight(BlockAt<BlockMXFP4>(row, index, 32), static_cast<int>(index % 32));
    case kFormatCount:
      break;
  }
  return NAN;
}

Rows RandomRows(Format format, int64_t k, int64_t count, bool extreme, Random& random) {
  const FormatInfo& info = InfoOf(format);
  const int64_t row_bytes = k / info.elements * info.bytes;
  // Float rows have the alignment of their element, blocks none.
  const int64_t unit = IsFloatFormat(format) ? info.bytes : 1;
  Rows rows;
  rows.first = unit * random.Int(0, 3);
  rows.stride = row_bytes + unit * random.Int(0, 3);
  const int64_t used = count == 0 ? 0 : (count - 1) * rows.stride + row_bytes;
  rows.bytes.resize(static_cast<size_t>(rows.first + used));
  for (uint8_t& byte : rows.bytes) byte = static_cast<uint8_t>(random.Next());
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t at = 0; at < row_bytes; at += info.bytes) {
      SetScales(format, rows.bytes.data() + rows.first + i * rows.stride + at, extreme, random);
    }
  }
  return rows;
}

Columns PrepareColumns(const MatmulKernel& kernel, int64_t k, const std::vector<float>& x,
                       int64_t count) {
  Columns columns;
  columns.stride = kernel.column_bytes(k);
  const auto size = static_cast<size_t>(columns.stride * count);
  columns.bytes = std::make_unique<uint8_t[]>(size + 64);
  columns.first =
      columns.bytes.get() + (64 - reinterpret_cast<uintptr_t>(columns.bytes.get()) % 64) % 64;
  for (int64_t j = 0; j < count; ++j) {
    kernel.prepare_column(k, x.data() + j * k, columns.first + j * columns.stride);
  }
  return columns;
}

bool SameBits(const float* a, const float* b, int64_t n) {
  return n == 0 || std::memcmp(a, b, sizeof(float) * static_cast<size_t>(n)) == 0;
}

}  // namespace weft::cpu
