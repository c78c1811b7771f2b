// Formats whose four-bit codes select from a table that is finer near zero. Source: spec H.4.
#include <cstdint>

#include "common/tensor/quant/block_codec.h"
#include "common/tensor/quant/reference_codec.h"

namespace weft {

void DecodeBlock(const BlockIQ4_NL& block, float* values) {
  const float d = HalfToFloat(block.d);
  for (int j = 0; j < 16; ++j) {
    values[j] = d * static_cast<float>(kIq4Values[block.qs[j] & 15]);
    values[j + 16] = d * static_cast<float>(kIq4Values[block.qs[j] >> 4]);
  }
}

void DecodeBlock(const BlockIQ4_XS& block, float* values) {
  const float d = HalfToFloat(block.d);
  for (int i = 0; i < 8; ++i) {  // sub-block of 32
    const int low = (block.scales_l[i / 2] >> (4 * (i % 2))) & 15;
    const int high = (block.scales_h >> (2 * i)) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const uint8_t* qs = block.qs + 16 * i;
    for (int j = 0; j < 16; ++j) {
      values[32 * i + j] = scale * static_cast<float>(kIq4Values[qs[j] & 15]);
      values[32 * i + j + 16] = scale * static_cast<float>(kIq4Values[qs[j] >> 4]);
    }
  }
}

}  // namespace weft
