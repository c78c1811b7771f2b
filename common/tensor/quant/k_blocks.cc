// Formats of 256 elements in sub-blocks whose scales are quantised themselves. Source: spec H.4.
#include <array>
#include <cstdint>

#include "common/tensor/quant/block_codec.h"
#include "common/tensor/quant/reference_codec.h"

namespace weft {

ScaleMin UnpackScaleMin(const uint8_t* scales, int sub_block) {
  const int j = sub_block;
  if (j < 4) return {scales[j] & 63, scales[j + 4] & 63};
  return {(scales[j + 4] & 15) | ((scales[j - 4] >> 6) << 4),
          (scales[j + 4] >> 4) | ((scales[j] >> 6) << 4)};
}

void PackScaleMins(const std::array<ScaleMin, 8>& pairs, uint8_t* scales) {
  for (int j = 0; j < 4; ++j) {
    const ScaleMin& low = pairs[j];
    const ScaleMin& high = pairs[j + 4];
    scales[j] = static_cast<uint8_t>(low.scale | (high.scale >> 4) << 6);
    scales[j + 4] = static_cast<uint8_t>(low.minimum | (high.minimum >> 4) << 6);
    scales[j + 8] = static_cast<uint8_t>((high.scale & 15) | (high.minimum & 15) << 4);
  }
}

int UnpackQ3Scale(const uint8_t* scales, int sub_block) {
  const int j = sub_block;
  const int low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;
  const int high = (scales[8 + j % 4] >> (2 * (j / 4))) & 3;
  return (low | high << 4) - 32;
}

void PackQ3Scales(const std::array<int, 16>& values, uint8_t* scales) {
  for (int i = 0; i < 12; ++i) scales[i] = 0;
  for (int j = 0; j < 16; ++j) {
    const int code = values[j] + 32;
    scales[j % 8] |= static_cast<uint8_t>((code & 15) << (j < 8 ? 0 : 4));
    scales[8 + j % 4] |= static_cast<uint8_t>((code >> 4) << (2 * (j / 4)));
  }
}

void DecodeBlock(const BlockQ2_K& block, float* values) {
  const float d = HalfToFloat(block.d);
  const float dmin = HalfToFloat(block.dmin);
  for (int i = 0; i < 16; ++i) {  // sub-block of 16
    const float scale = d * static_cast<float>(block.scales[i] & 15);
    const float minimum = dmin * static_cast<float>(block.scales[i] >> 4);
    const uint8_t* qs = block.qs + 32 * (i / 8) + 16 * (i % 2);
    const int shift = i / 2 % 4 * 2;
    for (int l = 0; l < 16; ++l) {
      values[16 * i + l] = scale * static_cast<float>((qs[l] >> shift) & 3) - minimum;
    }
  }
}

void DecodeBlock(const BlockQ3_K& block, float* values) {
  const float d = HalfToFloat(block.d);
  for (int i = 0; i < 16; ++i) {  // sub-block of 16
    const float scale = d * static_cast<float>(UnpackQ3Scale(block.scales, i));
    const uint8_t* qs = block.qs + 32 * (i / 8) + 16 * (i % 2);
    const uint8_t* hmask = block.hmask + 16 * (i % 2);
    const int shift = i / 2 % 4 * 2;
    const int high_bit = i / 2;
    for (int l = 0; l < 16; ++l) {
      const int low = (qs[l] >> shift) & 3;
      const int q = low - ((hmask[l] >> high_bit & 1) != 0 ? 0 : 4);
      values[16 * i + l] = scale * static_cast<float>(q);
    }
  }
}

void DecodeBlock(const BlockQ4_K& block, float* values) {
  const float d = HalfToFloat(block.d);
  const float dmin = HalfToFloat(block.dmin);
  for (int i = 0; i < 8; ++i) {  // sub-block of 32
    const ScaleMin pair = UnpackScaleMin(block.scales, i);
    const float scale = d * static_cast<float>(pair.scale);
    const float minimum = dmin * static_cast<float>(pair.minimum);
    const uint8_t* qs = block.qs + 32 * (i / 2);
    const int shift = 4 * (i % 2);
    for (int l = 0; l < 32; ++l) {
      values[32 * i + l] = scale * static_cast<float>((qs[l] >> shift) & 15) - minimum;
    }
  }
}

void DecodeBlock(const BlockQ5_K& block, float* values) {
  const float d = HalfToFloat(block.d);
  const float dmin = HalfToFloat(block.dmin);
  for (int i = 0; i < 8; ++i) {  // sub-block of 32
    const ScaleMin pair = UnpackScaleMin(block.scales, i);
    const float scale = d * static_cast<float>(pair.scale);
    const float minimum = dmin * static_cast<float>(pair.minimum);
    const uint8_t* qs = block.qs + 32 * (i / 2);
    const int shift = 4 * (i % 2);
    for (int l = 0; l < 32; ++l) {
      const int q = ((qs[l] >> shift) & 15) | ((block.qh[l] >> i) & 1) << 4;
      values[32 * i + l] = scale * static_cast<float>(q) - minimum;
    }
  }
}

void DecodeBlock(const BlockQ6_K& block, float* values) {
  const float d = HalfToFloat(block.d);
  for (int i = 0; i < 16; ++i) {  // sub-block of 16
    const int half = i / 8;
    const int quarter = i / 2 % 4;  // which 32 elements of the half
    const float scale = d * static_cast<float>(block.scales[i]);
    const uint8_t* ql = block.ql + 64 * half + 32 * (quarter % 2) + 16 * (i % 2);
    const uint8_t* qh = block.qh + 32 * half + 16 * (i % 2);
    for (int l = 0; l < 16; ++l) {
      const int low = (ql[l] >> (4 * (quarter / 2))) & 15;
      const int high = (qh[l] >> (2 * quarter)) & 3;
      values[16 * i + l] = scale * static_cast<float>((low | high << 4) - 32);
    }
  }
}

}  // namespace weft
