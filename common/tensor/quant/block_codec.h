// One block of each format to F32 and back: the parts that reference_codec is put together from.
// The blocks are packed structs without alignment, so a reference may point anywhere into a row.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "common/tensor/quant/block_layout.h"

namespace weft {

// Elements in a block of type `Block`.
template <typename Block>
inline constexpr int kBlockElements = 32;
template <>
inline constexpr int kBlockElements<BlockQ2_K> = 256;
template <>
inline constexpr int kBlockElements<BlockQ3_K> = 256;
template <>
inline constexpr int kBlockElements<BlockQ4_K> = 256;
template <>
inline constexpr int kBlockElements<BlockQ5_K> = 256;
template <>
inline constexpr int kBlockElements<BlockQ6_K> = 256;
template <>
inline constexpr int kBlockElements<BlockIQ4_XS> = 256;

// The values that the sixteen codes of the IQ4 types stand for, ascending. Source: spec H.4.
inline constexpr std::array<int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};

// The values of the E2M1 codes of MXFP4, doubled to make them whole. Source: spec H.4.
inline constexpr std::array<int8_t, 16> kE2M1Doubled = {0, 1,  2,  3,  4,  6,  8,  12,
                                                        0, -1, -2, -3, -4, -6, -8, -12};

// Half of the scale that exponent byte `e` of an MXFP4 block stands for, 2^(e - 128); NaN for 255.
float Mxfp4HalfScale(uint8_t e);

// Scale and minimum (0..63) of sub-block 0..7 in the twelve bytes of Q4_K and Q5_K.
struct ScaleMin {
  int scale;
  int minimum;
};
ScaleMin UnpackScaleMin(const uint8_t* scales, int sub_block);
// The reverse for all eight.
void PackScaleMins(const std::array<ScaleMin, 8>& pairs, uint8_t* scales);

// Scale (-32..31) of sub-block 0..15 in the twelve bytes of Q3_K.
int UnpackQ3Scale(const uint8_t* scales, int sub_block);
void PackQ3Scales(const std::array<int, 16>& values, uint8_t* scales);

// 1 / scale; zero for a scale so small (2^-128 and below) that this is beyond F32, which any half
// stores as zero.
inline float InverseOrZero(float scale) {
  return std::fabs(scale) > 0x1.0p-128f ? 1.0f / scale : 0.0f;
}

// `values` receives kBlockElements<Block> elements. Source: spec H.4.
void DecodeBlock(const BlockQ4_0& block, float* values);
void DecodeBlock(const BlockQ4_1& block, float* values);
void DecodeBlock(const BlockQ5_0& block, float* values);
void DecodeBlock(const BlockQ5_1& block, float* values);
void DecodeBlock(const BlockQ8_0& block, float* values);
void DecodeBlock(const BlockMXFP4& block, float* values);
void DecodeBlock(const BlockQ2_K& block, float* values);
void DecodeBlock(const BlockQ3_K& block, float* values);
void DecodeBlock(const BlockQ4_K& block, float* values);
void DecodeBlock(const BlockQ5_K& block, float* values);
void DecodeBlock(const BlockQ6_K& block, float* values);
void DecodeBlock(const BlockIQ4_NL& block, float* values);
void DecodeBlock(const BlockIQ4_XS& block, float* values);

// The reverse. `values` are finite. False if the scales do not fit their type; the codes are then
// not written.
bool EncodeBlock(const float* values, BlockQ4_0& block);
bool EncodeBlock(const float* values, BlockQ4_1& block);
bool EncodeBlock(const float* values, BlockQ5_0& block);
bool EncodeBlock(const float* values, BlockQ5_1& block);
bool EncodeBlock(const float* values, BlockQ8_0& block);
bool EncodeBlock(const float* values, BlockMXFP4& block);
bool EncodeBlock(const float* values, BlockQ2_K& block);
bool EncodeBlock(const float* values, BlockQ3_K& block);
bool EncodeBlock(const float* values, BlockQ4_K& block);
bool EncodeBlock(const float* values, BlockQ5_K& block);
bool EncodeBlock(const float* values, BlockQ6_K& block);
bool EncodeBlock(const float* values, BlockIQ4_NL& block);
bool EncodeBlock(const float* values, BlockIQ4_XS& block);

}  // namespace weft
