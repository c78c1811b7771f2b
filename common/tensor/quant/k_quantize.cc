// The encoders of the formats of 256: scales by scale_search, then the codes nearest to the values.
// Source of the layouts: spec H.4.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/tensor/quant/block_codec.h"
#include "common/tensor/quant/reference_codec.h"
#include "common/tensor/quant/scale_search.h"

namespace weft {
namespace {

constexpr int kElements = 256;

template <int kSubBlocks>
bool IsFinite(const AffineScales<kSubBlocks>& found) {
  return std::isfinite(HalfToFloat(found.d)) && std::isfinite(HalfToFloat(found.dmin));
}

// The codes 0..kMaxCode of all elements.
template <int kMaxCode, int kSubBlocks>
std::array<uint8_t, kElements> AffineCodes(const float* values,
                                           const AffineScales<kSubBlocks>& found) {
  constexpr int kCount = kElements / kSubBlocks;
  const float d = HalfToFloat(found.d);
  const float dmin = HalfToFloat(found.dmin);
  std::array<uint8_t, kElements> codes;
  for (int i = 0; i < kElements; ++i) {
    const float inverse = InverseOrZero(d * static_cast<float>(found.scales[i / kCount]));
    const float minimum = dmin * static_cast<float>(found.minimums[i / kCount]);
    codes[i] = static_cast<uint8_t>(ClampedInteger((values[i] + minimum) * inverse, 0, kMaxCode));
  }
  return codes;
}

// The codes low..high of all elements, counted from low.
template <int kLow, int kHigh>
std::array<uint8_t, kElements> SignedCodes(const float* values, const SignedScales<16>& found) {
  const float d = HalfToFloat(found.d);
  std::array<uint8_t, kElements> codes;
  for (int i = 0; i < kElements; ++i) {
    const float inverse = InverseOrZero(d * static_cast<float>(found.scales[i / 16]));
    codes[i] = static_cast<uint8_t>(ClampedInteger(values[i] * inverse, kLow, kHigh) - kLow);
  }
  return codes;
}

// Two bits of each code into the 64 bytes that Q2_K and Q3_K share: quarter t of a half at bit 2t.
void PackTwoBits(const std::array<uint8_t, kElements>& codes, uint8_t* qs) {
  std::memset(qs, 0, 64);
  for (int i = 0; i < kElements; ++i) {
    qs[32 * (i / 128) + i % 32] |= static_cast<uint8_t>((codes[i] & 3) << (i / 32 % 4 * 2));
  }
}

// The low four bits of each code into the 128 bytes that Q4_K and Q5_K share.
void PackNibblePairs(const std::array<uint8_t, kElements>& codes, uint8_t* qs) {
  for (int i = 0; i < 128; ++i) {
    const int first = 64 * (i / 32) + i % 32;
    qs[i] = static_cast<uint8_t>((codes[first] & 15) | (codes[first + 32] & 15) << 4);
  }
}

std::array<ScaleMin, 8> Pairs(const AffineScales<8>& found) {
  std::array<ScaleMin, 8> pairs;
  for (int i = 0; i < 8; ++i) pairs[i] = {found.scales[i], found.minimums[i]};
  return pairs;
}

}  // namespace

bool EncodeBlock(const float* values, BlockQ2_K& block) {
  const auto found = SearchAffine<3, 16, 16>(values, 15, {0.7f, 0.06f, 12});
  block.d = found.d;
  block.dmin = found.dmin;
  if (!IsFinite(found)) return false;
  for (int i = 0; i < 16; ++i) {
    block.scales[i] = static_cast<uint8_t>(found.scales[i] | found.minimums[i] << 4);
  }
  PackTwoBits(AffineCodes<3>(values, found), block.qs);
  return true;
}

bool EncodeBlock(const float* values, BlockQ3_K& block) {
  const auto found = SearchSigned<WholeCodes<-4, 3>, 16, 16>(values, -32, 31, {0.7f, 0.06f, 10});
  block.d = found.d;
  if (!std::isfinite(HalfToFloat(found.d))) return false;
  PackQ3Scales(found.scales, block.scales);
  const std::array<uint8_t, kElements> codes = SignedCodes<-4, 3>(values, found);
  PackTwoBits(codes, block.qs);
  std::memset(block.hmask, 0, sizeof(block.hmask));
  for (int i = 0; i < kElements; ++i) {
    block.hmask[i % 32] |= static_cast<uint8_t>((codes[i] >> 2) << (i / 32));
  }
  return true;
}

bool EncodeBlock(const float* values, BlockQ4_K& block) {
  const auto found = SearchAffine<15, 8, 32>(values, 63, {0.88f, 0.03f, 8});
  block.d = found.d;
  block.dmin = found.dmin;
  if (!IsFinite(found)) return false;
  PackScaleMins(Pairs(found), block.scales);
  PackNibblePairs(AffineCodes<15>(values, found), block.qs);
  return true;
}

bool EncodeBlock(const float* values, BlockQ5_K& block) {
  const auto found = SearchAffine<31, 8, 32>(values, 63, {0.93f, 0.015f, 8});
  block.d = found.d;
  block.dmin = found.dmin;
  if (!IsFinite(found)) return false;
  PackScaleMins(Pairs(found), block.scales);
  const std::array<uint8_t, kElements> codes = AffineCodes<31>(values, found);
  PackNibblePairs(codes, block.qs);
  std::memset(block.qh, 0, sizeof(block.qh));
  for (int i = 0; i < kElements; ++i) {
    block.qh[i % 32] |= static_cast<uint8_t>((codes[i] >> 4) << (i / 32));
  }
  return true;
}

bool EncodeBlock(const float* values, BlockQ6_K& block) {
  const auto found =
      SearchSigned<WholeCodes<-32, 31>, 16, 16>(values, -128, 127, {0.93f, 0.02f, 6});
  block.d = found.d;
  if (!std::isfinite(HalfToFloat(found.d))) return false;
  for (int i = 0; i < 16; ++i) block.scales[i] = static_cast<int8_t>(found.scales[i]);
  const std::array<uint8_t, kElements> codes = SignedCodes<-32, 31>(values, found);
  std::memset(block.ql, 0, sizeof(block.ql));
  std::memset(block.qh, 0, sizeof(block.qh));
  for (int i = 0; i < kElements; ++i) {
    const int half = i / 128;
    const int quarter = i / 32 % 4;
    const int l = i % 32;
    block.ql[64 * half + 32 * (quarter % 2) + l] |=
        static_cast<uint8_t>((codes[i] & 15) << (4 * (quarter / 2)));
    block.qh[32 * half + l] |= static_cast<uint8_t>((codes[i] >> 4) << (2 * quarter));
  }
  return true;
}

}  // namespace weft
