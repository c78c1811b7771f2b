// Formats with one scale (and offset) for 32 elements. Source: spec H.4 and H.5.
#include <bit>
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

}  // namespace weft
