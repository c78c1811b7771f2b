// Formats whose four-bit codes select from a table that is finer near zero. Source: spec H.4.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "common/tensor/quant/block_codec.h"
#include "common/tensor/quant/reference_codec.h"
#include "common/tensor/quant/scale_search.h"

namespace weft {
namespace {

// For each whole number n from -127 to 113 the code of the largest value below or at n. Between n
// and n + 1 lies at most one point where the nearest value changes, so one comparison settles the
// rest.
struct NearestTable {
  std::array<uint8_t, 241> nearest_of_floor{};
  std::array<float, 16> upper_bound{};  // up to where a code is the nearest
};

constexpr NearestTable MakeNearestTable() {
  NearestTable table;
  for (int code = 0; code < 16; ++code) {
    table.upper_bound[code] = code == 15 ? std::numeric_limits<float>::infinity()
                                         : 0.5f * (kIq4Values[code] + kIq4Values[code + 1]);
  }
  int code = 0;
  for (int n = -127; n <= 113; ++n) {
    while (static_cast<float>(n) > table.upper_bound[code]) ++code;
    table.nearest_of_floor[n + 127] = static_cast<uint8_t>(code);
  }
  return table;
}

constexpr NearestTable kNearest = MakeNearestTable();

struct Iq4Codes {
  static constexpr float kLowest = -127;
  static constexpr float kHighest = 113;
  static int Code(float value) {
    const float bounded = std::min(std::max(value, kLowest), kHighest);
    const int code = kNearest.nearest_of_floor[static_cast<int>(bounded + 127.0f)];
    return code + (bounded > kNearest.upper_bound[code] ? 1 : 0);
  }
  static float Nearest(float value) { return static_cast<float>(kIq4Values[Code(value)]); }
};

constexpr Tries kTries = {0.7f, 0.05f, 9};

// 32 codes, element j in the low and j + 16 in the high half of byte j.
void PackCodes(const float* values, float scale, uint8_t* qs) {
  const float inverse = InverseOrZero(scale);
  for (int j = 0; j < 16; ++j) {
    qs[j] = static_cast<uint8_t>(Iq4Codes::Code(values[j] * inverse) |
                                 Iq4Codes::Code(values[j + 16] * inverse) << 4);
  }
}

}  // namespace

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

bool EncodeBlock(const float* values, BlockIQ4_NL& block) {
  block.d = ScaleToHalf(BestSignedScale<Iq4Codes, 32>(values, kTries));
  float d = HalfToFloat(block.d);
  if (!std::isfinite(d)) return false;
  // No code means zero, so that the smallest half can be worse than no scale at all.
  if (SignedError<Iq4Codes, 32>(values, d) > SignedError<Iq4Codes, 32>(values, 0.0f)) {
    block.d = 0;
    d = 0.0f;
  }
  PackCodes(values, d, block.qs);
  return true;
}

bool EncodeBlock(const float* values, BlockIQ4_XS& block) {
  const auto found = SearchSigned<Iq4Codes, 8, 32>(values, -32, 31, kTries);
  block.d = found.d;
  const float d = HalfToFloat(found.d);
  if (!std::isfinite(d)) return false;
  block.scales_h = 0;
  std::memset(block.scales_l, 0, sizeof(block.scales_l));
  for (int i = 0; i < 8; ++i) {
    const int code = found.scales[i] + 32;
    block.scales_l[i / 2] |= static_cast<uint8_t>((code & 15) << (4 * (i % 2)));
    block.scales_h = static_cast<uint16_t>(block.scales_h | (code >> 4) << (2 * i));
    PackCodes(values + 32 * i, d * static_cast<float>(found.scales[i]), block.qs + 16 * i);
  }
  return true;
}

}  // namespace weft
