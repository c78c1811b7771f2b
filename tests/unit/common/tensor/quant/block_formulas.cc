#include "tests/unit/common/tensor/quant/block_formulas.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "common/base/check.h"

namespace weft {
namespace {

float HalfAt(const uint8_t* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, 2);
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}

int Bits(int byte, int first, int count) { return (byte >> first) & ((1 << count) - 1); }

int Nibble(const uint8_t* qs, int index) { return Bits(qs[index % 16], index < 16 ? 0 : 4, 4); }

int FiveBits(const uint8_t* qh, const uint8_t* qs, int index) {
  return Nibble(qs, index) + 16 * Bits(qh[index / 8], index % 8, 1);
}

// Q2_K and Q3_K: two bits of element `index`.
int TwoBits(const uint8_t* qs, int index) {
  return Bits(qs[32 * (index / 128) + index % 32], 2 * (index % 128 / 32), 2);
}

float Q2K(const uint8_t* block, int index) {
  const int scale = block[index / 16] % 16;
  const int minimum = block[index / 16] / 16;
  const float d = HalfAt(block + 80);
  const float dmin = HalfAt(block + 82);
  const int q = TwoBits(block + 16, index);
  return d * static_cast<float>(scale) * static_cast<float>(q) - dmin * static_cast<float>(minimum);
}

float Q3K(const uint8_t* block, int index) {
  const uint8_t* scales = block + 96;
  const int j = index / 16;
  const int low = Bits(scales[j % 8], j < 8 ? 0 : 4, 4);
  const int high = Bits(scales[8 + j % 4], 2 * (j / 4), 2);
  const int scale = low + 16 * high - 32;
  const int half = index / 128;
  const int t = index % 128 / 32;
  const int q = TwoBits(block + 32, index) - (Bits(block[index % 32], 4 * half + t, 1) ? 0 : 4);
  return HalfAt(block + 108) * static_cast<float>(scale) * static_cast<float>(q);
}

float Q45K(const uint8_t* block, int index, bool five) {
  const uint8_t* s = block + 4;
  const int j = index / 32;
  const int scale = j < 4 ? Bits(s[j], 0, 6) : Bits(s[j + 4], 0, 4) + 16 * Bits(s[j - 4], 6, 2);
  const int minimum = j < 4 ? Bits(s[j + 4], 0, 6) : Bits(s[j + 4], 4, 4) + 16 * Bits(s[j], 6, 2);
  const uint8_t* qs = block + (five ? 48 : 16);
  int q = Bits(qs[32 * (j / 2) + index % 32], j % 2 == 0 ? 0 : 4, 4);
  if (five) q += 16 * Bits(block[16 + index % 32], j, 1);
  return HalfAt(block) * static_cast<float>(scale) * static_cast<float>(q) -
         HalfAt(block + 2) * static_cast<float>(minimum);
}

float Q6K(const uint8_t* block, int index) {
  const int half = index / 128;
  const int within = index % 128;
  const int l = within % 32;
  const uint8_t* ql = block + 64 * half;
  const int high = block[128 + 32 * half + l];
  const auto scale = static_cast<int8_t>(block[192 + 8 * half + within / 16]);
  int q = 0;
  switch (within / 32) {
    case 0:
      q = Bits(ql[l], 0, 4) + 16 * Bits(high, 0, 2);
      break;
    case 1:
      q = Bits(ql[l + 32], 0, 4) + 16 * Bits(high, 2, 2);
      break;
    case 2:
      q = Bits(ql[l], 4, 4) + 16 * Bits(high, 4, 2);
      break;
    default:
      q = Bits(ql[l + 32], 4, 4) + 16 * Bits(high, 6, 2);
      break;
  }
  return HalfAt(block + 208) * static_cast<float>(scale) * static_cast<float>(q - 32);
}

constexpr int kTable[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                            1,    13,   25,  38,  53,  69,  89,  113};

float Iq4Xs(const uint8_t* block, int index) {
  const int b = index / 32;
  uint16_t scales_h;
  std::memcpy(&scales_h, block + 2, 2);
  const int scale = Bits(block[4 + b / 2], 4 * (b % 2), 4) + 16 * Bits(scales_h, 2 * b, 2) - 32;
  return HalfAt(block) * static_cast<float>(scale) *
         static_cast<float>(kTable[Nibble(block + 8 + 16 * b, index % 32)]);
}

float Mxfp4(const uint8_t* block, int index) {
  constexpr double kE2M1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  if (block[0] == 255) return NAN;
  const int code = Nibble(block + 1, index);
  const double magnitude = std::ldexp(kE2M1[code % 8], block[0] - 127);  // exact in double
  return static_cast<float>(code < 8 ? magnitude : 0 - magnitude);
}

}  // namespace

float FormulaValue(DType dtype, const uint8_t* block, int index) {
  const float d = HalfAt(block);  // where the block begins with it
  switch (dtype) {
    case DType::kQ4_0:
      return d * static_cast<float>(Nibble(block + 2, index) - 8);
    case DType::kQ4_1:
      return d * static_cast<float>(Nibble(block + 4, index)) + HalfAt(block + 2);
    case DType::kQ5_0:
      return d * static_cast<float>(FiveBits(block + 2, block + 6, index) - 16);
    case DType::kQ5_1:
      return d * static_cast<float>(FiveBits(block + 4, block + 8, index)) + HalfAt(block + 2);
    case DType::kQ8_0:
      return d * static_cast<float>(static_cast<int8_t>(block[2 + index]));
    case DType::kQ2_K:
      return Q2K(block, index);
    case DType::kQ3_K:
      return Q3K(block, index);
    case DType::kQ4_K:
      return Q45K(block, index, false);
    case DType::kQ5_K:
      return Q45K(block, index, true);
    case DType::kQ6_K:
      return Q6K(block, index);
    case DType::kIQ4_NL:
      return d * static_cast<float>(kTable[Nibble(block + 2, index)]);
    case DType::kIQ4_XS:
      return Iq4Xs(block, index);
    case DType::kMXFP4:
      return Mxfp4(block, index);
    default:
      WEFT_CHECK(false);
      return 0;
  }
}

}  // namespace weft
