/* Integer dot products of a panel of four weight rows in plain C++; see panel_avx2.h. A strip is
 * sixteen bytes of one row; codes are signed. */
#pragma once

#include "common/cpu/kernels/simd_scalar.h"

namespace weft::cpu::WEFT_ISA {
namespace {

constexpr int kPanelRows = 4;
constexpr int kTileColumns = 2;
constexpr int kFloatTileRows = 2;
constexpr int kFloatTileColumns = 2;

using RowPointers = const uint8_t* const (&)[kPanelRows];

struct PanelFloat {
  float v[kPanelRows];
};
struct PanelInt {
  int32_t v[kPanelRows];
};
struct Strip {
  uint8_t v[16];
};

inline PanelFloat LoadPanel(const float* p) {
  PanelFloat r;
  memcpy(r.v, p, sizeof(r.v));
  return r;
}
inline void StorePanel(float* p, const PanelFloat& x) { memcpy(p, x.v, sizeof(x.v)); }
inline PanelFloat ZeroPanel() { return {}; }
inline PanelFloat Mul(PanelFloat x, const PanelFloat& y) {
  for (int i = 0; i < kPanelRows; ++i) x.v[i] *= y.v[i];
  return x;
}
inline PanelFloat MulBroadcast(PanelFloat x, const float* y) {
  for (float& value : x.v) value *= *y;
  return x;
}
inline PanelFloat Fma(const PanelFloat& x, const PanelFloat& y, PanelFloat z) {
  for (int i = 0; i < kPanelRows; ++i) z.v[i] = FusedMultiplyAdd(x.v[i], y.v[i], z.v[i]);
  return z;
}
inline PanelFloat FmaBroadcast(const PanelFloat& x, const float* y, PanelFloat z) {
  for (int i = 0; i < kPanelRows; ++i) z.v[i] = FusedMultiplyAdd(x.v[i], *y, z.v[i]);
  return z;
}
inline PanelFloat NegatePanel(PanelFloat x) {
  for (float& value : x.v) value = -value;
  return x;
}
inline PanelFloat ToFloat(const PanelInt& x) {
  PanelFloat r;
  for (int i = 0; i < kPanelRows; ++i) r.v[i] = static_cast<float>(x.v[i]);
  return r;
}

#define WEFT_LANES(expression)                                   \
  for (int32_t & lane : x.v) {                                   \
    [[maybe_unused]] const auto u = static_cast<uint32_t>(lane); \
    lane = static_cast<int32_t>(expression);                     \
  }                                                              \
  return x
inline PanelInt AddInt(PanelInt x, int32_t y) { WEFT_LANES(lane + y); }
inline PanelInt AddBroadcast(PanelInt x, const void* y) {
  int32_t word;
  memcpy(&word, y, 4);
  return AddInt(x, word);
}
inline PanelInt WordBits(PanelInt x, int shift, uint32_t mask) { WEFT_LANES((u >> shift) & mask); }
inline PanelInt SignedByte(PanelInt x, int index) {
  WEFT_LANES(static_cast<int8_t>(static_cast<uint8_t>(u >> (8 * index))));
}
#undef WEFT_LANES
inline PanelInt OrShifted(PanelInt x, const PanelInt& y, int shift) {
  for (int i = 0; i < kPanelRows; ++i) {
    x.v[i] = static_cast<int32_t>(static_cast<uint32_t>(x.v[i]) | static_cast<uint32_t>(y.v[i])
                                                                      << shift);
  }
  return x;
}
inline PanelFloat HalfOfWord(const PanelInt& x) {
  PanelFloat r;
  for (int i = 0; i < kPanelRows; ++i) r.v[i] = HalfToFloat(static_cast<uint16_t>(x.v[i]));
  return r;
}
inline PanelInt GatherWords(RowPointers rows, int64_t offset) {
  PanelInt r;
  for (int i = 0; i < kPanelRows; ++i) memcpy(&r.v[i], rows[i] + offset, 4);
  return r;
}
inline void GatherHalves(RowPointers rows, int64_t offset, PanelFloat* low, PanelFloat* high) {
  const PanelInt words = GatherWords(rows, offset);
  *low = HalfOfWord(words);
  *high = HalfOfWord(WordBits(words, 16, 0xFFFFu));
}
inline PanelFloat PowerOfExponent(const PanelInt& e) {
  PanelFloat r;
  for (int i = 0; i < kPanelRows; ++i) {
    const auto x = static_cast<uint32_t>(e.v[i]);
    r.v[i] = FromBits(x == 255 ? 0x7FC00000u : x < 2 ? 0x00200000u << x : (x - 1) << 23);
  }
  return r;
}

inline Strip LoadStrip(RowPointers rows, int64_t offset, int s) {
  Strip r;
  memcpy(r.v, rows[s] + offset, 16);
  return r;
}
inline Strip ShiftRightAnd(Strip x, int shift, int mask) {
  for (uint8_t& byte : x.v) {
    const int shifted = shift >= 0 ? byte >> shift : byte << -shift;
    byte = static_cast<uint8_t>(shifted & mask);
  }
  return x;
}
inline Strip Or(Strip x, const Strip& y) {
  for (int i = 0; i < 16; ++i) x.v[i] |= y.v[i];
  return x;
}
inline Strip ExpandBits(RowPointers rows, int64_t at, int half, int s, int value) {
  uint16_t bits;
  memcpy(&bits, rows[s] + at + 2 * half, 2);
  Strip r;
  for (int i = 0; i < 16; ++i) r.v[i] = static_cast<uint8_t>(((bits >> i) & 1) != 0 ? value : 0);
  return r;
}
inline Strip Lookup(Strip index, const int8_t (&table)[16]) {
  for (uint8_t& byte : index.v) byte = static_cast<uint8_t>(table[byte]);
  return index;
}
inline void StoreFirstRow(const Strip& x, uint8_t* out) { memcpy(out, x.v, 16); }

template <class F>
constexpr int kCodeOffset = 0;

template <class F>
inline Strip FinishCodes(Strip codes) {
  if constexpr (!F::kSigned && F::kOffset != 0) {
    for (uint8_t& code : codes.v) code = static_cast<uint8_t>(code - F::kOffset);
  }
  return codes;
}

inline void Transpose(const Strip (&strips)[4], PanelInt (&words)[4]) {
  for (int w = 0; w < 4; ++w) {
    for (int s = 0; s < 4; ++s) memcpy(&words[w].v[s], strips[s].v + 4 * w, 4);
  }
}
inline void StoreWords(const PanelInt& x, uint8_t* out) { memcpy(out, x.v, sizeof(x.v)); }

template <class F>
inline PanelInt DotSixteen(const Strip (&codes)[4], const int8_t* x) {
  PanelInt sums;
  for (int s = 0; s < 4; ++s) {
    sums.v[s] = 0;
    for (int e = 0; e < 16; ++e) sums.v[s] += static_cast<int8_t>(codes[s].v[e]) * x[e];
  }
  return sums;
}
template <class F>
inline PanelInt DotThirtyTwo(const Strip (&first)[4], const Strip (&second)[4], const int8_t* x) {
  PanelInt sums = DotSixteen<F>(first, x);
  const PanelInt more = DotSixteen<F>(second, x + 16);
  for (int s = 0; s < 4; ++s) sums.v[s] += more.v[s];
  return sums;
}

template <class F, int kWords, int kColumns, class Use>
inline void DotColumns(const uint8_t* codes, const uint8_t* const (&x)[kColumns], int64_t offset,
                       Use use) {
  for (int j = 0; j < kColumns; ++j) {
    PanelInt sum = {};
    for (int w = 0; w < kWords; ++w) {
      for (int i = 0; i < kPanelRows; ++i) {
        for (int e = 0; e < 4; ++e) {
          sum.v[i] += static_cast<int8_t>(codes[4 * (w * kPanelRows + i) + e]) *
                      static_cast<int8_t>(x[j][offset + 4 * w + e]);
        }
      }
    }
    use(j, sum);
  }
}

}  // namespace
}  // namespace weft::cpu::WEFT_ISA
