// Formats with one scale (and offset) for 32 elements. Source: spec H.4 and H.5.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "common/tensor/quant/block_codec.h"
#include "common/tensor/quant/reference_codec.h"

namespace weft {
namespace {

uint32_t LoadBits(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 |
         static_cast<uint32_t>(bytes[2]) << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

// Five-bit code of element 0..31: a nibble of qs and a bit of qh.
int FiveBitCode(const uint8_t* qs, uint32_t high_bits, int element) {
  const int low = element < 16 ? qs[element] & 15 : qs[element - 16] >> 4;
  return low | static_cast<int>((high_bits >> element) & 1u) << 4;
}

bool IsFiniteHalf(uint16_t half) { return (half & 0x7C00) != 0x7C00; }

// The first element of largest magnitude.
float Extreme(const float* values) {
  return *std::max_element(values, values + 32,
                           [](float a, float b) { return std::fabs(a) < std::fabs(b); });
}

// Truncates to a code from 0 to `largest`. The sum is in double so that it rounds once, as with a
// fused multiply-add.
uint8_t TruncatedCode(float value, float inverse, double offset, int largest) {
  const double code = static_cast<double>(value) * static_cast<double>(inverse) + offset;
  return static_cast<uint8_t>(std::clamp(code, 0.0, static_cast<double>(largest)));
}

void PackNibbles(const uint8_t* codes, uint8_t* qs) {
  for (int j = 0; j < 16; ++j) {
    qs[j] = static_cast<uint8_t>((codes[j] & 15) | (codes[j + 16] & 15) << 4);
  }
}

void PackHighBits(const uint8_t* codes, uint8_t* qh) {
  for (int i = 0; i < 4; ++i) {
    qh[i] = 0;
    for (int bit = 0; bit < 8; ++bit) {
      qh[i] |= static_cast<uint8_t>((codes[8 * i + bit] >> 4) << bit);
    }
  }
}

}  // namespace

void DecodeBlock(const BlockQ4_0& block, float* values) {
  const float d = HalfToFloat(block.d);
  for (int j = 0; j < 16; ++j) {
    values[j] = d * static_cast<float>((block.qs[j] & 15) - 8);
    values[j + 16] = d * static_cast<float>((block.qs[j] >> 4) - 8);
  }
}

void DecodeBlock(const BlockQ4_1& block, float* values) {
  const float d = HalfToFloat(block.d);
  const float m = HalfToFloat(block.m);
  for (int j = 0; j < 16; ++j) {
    values[j] = d * static_cast<float>(block.qs[j] & 15) + m;
    values[j + 16] = d * static_cast<float>(block.qs[j] >> 4) + m;
  }
}

void DecodeBlock(const BlockQ5_0& block, float* values) {
  const float d = HalfToFloat(block.d);
  const uint32_t high_bits = LoadBits(block.qh);
  for (int j = 0; j < 32; ++j) {
    values[j] = d * static_cast<float>(FiveBitCode(block.qs, high_bits, j) - 16);
  }
}

void DecodeBlock(const BlockQ5_1& block, float* values) {
  const float d = HalfToFloat(block.d);
  const float m = HalfToFloat(block.m);
  const uint32_t high_bits = LoadBits(block.qh);
  for (int j = 0; j < 32; ++j) {
    values[j] = d * static_cast<float>(FiveBitCode(block.qs, high_bits, j)) + m;
  }
}

void DecodeBlock(const BlockQ8_0& block, float* values) {
  const float d = HalfToFloat(block.d);
  for (int j = 0; j < 32; ++j) values[j] = d * static_cast<float>(block.qs[j]);
}

float Mxfp4HalfScale(uint8_t e) {
  if (e == 255) return std::numeric_limits<float>::quiet_NaN();
  // 2^(e - 128): below e = 2 a denormal of F32, whose bit is set by hand.
  const uint32_t bits = e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23;
  return std::bit_cast<float>(bits);
}

void DecodeBlock(const BlockMXFP4& block, float* values) {
  const float half_scale = Mxfp4HalfScale(block.e);
  for (int j = 0; j < 16; ++j) {
    values[j] = half_scale * static_cast<float>(kE2M1Doubled[block.qs[j] & 15]);
    values[j + 16] = half_scale * static_cast<float>(kE2M1Doubled[block.qs[j] >> 4]);
  }
}

bool EncodeBlock(const float* values, BlockQ4_0& block) {
  const float d = Extreme(values) / -8.0f;
  block.d = FloatToHalf(d);
  if (!IsFiniteHalf(block.d)) return false;
  const float inverse = InverseOrZero(d);
  uint8_t codes[32];
  for (int j = 0; j < 32; ++j) codes[j] = TruncatedCode(values[j], inverse, 8.5, 15);
  PackNibbles(codes, block.qs);
  return true;
}

bool EncodeBlock(const float* values, BlockQ4_1& block) {
  const auto [low, high] = std::minmax_element(values, values + 32);
  const float minimum = *low;
  const float d = (*high - minimum) / 15.0f;
  block.d = FloatToHalf(d);
  block.m = FloatToHalf(minimum);
  if (!IsFiniteHalf(block.d) || !IsFiniteHalf(block.m)) return false;
  const float inverse = InverseOrZero(d);
  uint8_t codes[32];
  for (int j = 0; j < 32; ++j) codes[j] = TruncatedCode(values[j] - minimum, inverse, 0.5, 15);
  PackNibbles(codes, block.qs);
  return true;
}

bool EncodeBlock(const float* values, BlockQ5_0& block) {
  const float d = Extreme(values) / -16.0f;
  block.d = FloatToHalf(d);
  if (!IsFiniteHalf(block.d)) return false;
  const float inverse = InverseOrZero(d);
  uint8_t codes[32];
  for (int j = 0; j < 32; ++j) codes[j] = TruncatedCode(values[j], inverse, 16.5, 31);
  PackNibbles(codes, block.qs);
  PackHighBits(codes, block.qh);
  return true;
}

bool EncodeBlock(const float* values, BlockQ5_1& block) {
  const auto [low, high] = std::minmax_element(values, values + 32);
  const float minimum = *low;
  const float d = (*high - minimum) / 31.0f;
  block.d = FloatToHalf(d);
  block.m = FloatToHalf(minimum);
  if (!IsFiniteHalf(block.d) || !IsFiniteHalf(block.m)) return false;
  const float inverse = InverseOrZero(d);
  uint8_t codes[32];
  for (int j = 0; j < 32; ++j) codes[j] = TruncatedCode(values[j] - minimum, inverse, 0.5, 31);
  PackNibbles(codes, block.qs);
  PackHighBits(codes, block.qh);
  return true;
}

bool EncodeBlock(const float* values, BlockQ8_0& block) {
  const float d = std::fabs(Extreme(values)) / 127.0f;
  block.d = FloatToHalf(d);
  if (!IsFiniteHalf(block.d)) return false;
  const float inverse = InverseOrZero(d);
  for (int j = 0; j < 32; ++j) {
    block.qs[j] = static_cast<int8_t>(std::clamp(std::round(values[j] * inverse), -127.0f, 127.0f));
  }
  return true;
}

bool EncodeBlock(const float* values, BlockMXFP4& block) {
  const float largest = std::fabs(Extreme(values));
  const int exponent = largest > 0.0f ? std::ilogb(largest) - 2 + 127 : 0;
  block.e = static_cast<uint8_t>(std::max(exponent, 0));
  const float half_scale = Mxfp4HalfScale(block.e);
  uint8_t codes[32];
  for (int j = 0; j < 32; ++j) {
    codes[j] = 0;
    float best = std::fabs(values[j]);
    for (int code = 1; code < 16; ++code) {
      const float error =
          std::fabs(values[j] - half_scale * static_cast<float>(kE2M1Doubled[code]));
      if (error < best) {
        best = error;
        codes[j] = static_cast<uint8_t>(code);
      }
    }
  }
  PackNibbles(codes, block.qs);
  return true;
}

}  // namespace weft
