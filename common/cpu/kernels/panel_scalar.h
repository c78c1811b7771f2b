/* Integer dot products of a panel of weight rows in plain C++; see panel_avx2.h. Codes are signed.
 */
#pragma once

#include "common/cpu/kernels/simd_scalar.h"

namespace weft::cpu::WEFT_ISA {
namespace {

struct Bytes {
  uint8_t v[32];
};

inline Bytes LoadBytes(const void* p) {
  Bytes r;
  memcpy(r.v, p, 32);
  return r;
}
inline Bytes Nibbles(const uint8_t* p) {
  Bytes r;
  for (int i = 0; i < 16; ++i) {
    r.v[i] = p[i] & 15;
    r.v[i + 16] = p[i] >> 4;
  }
  return r;
}
inline Bytes ShiftRightAnd(const Bytes& x, int shift, int mask) {
  Bytes r;
  for (int i = 0; i < 32; ++i) r.v[i] = static_cast<uint8_t>((x.v[i] >> shift) & mask);
  return r;
}
inline Bytes ShiftLeft(const Bytes& x, int shift) {
  Bytes r;
  for (int i = 0; i < 32; ++i) r.v[i] = static_cast<uint8_t>(x.v[i] << shift);
  return r;
}
inline Bytes Or(const Bytes& x, const Bytes& y) {
  Bytes r;
  for (int i = 0; i < 32; ++i) r.v[i] = x.v[i] | y.v[i];
  return r;
}
inline Bytes ExpandBits(uint32_t bits, int value) {
  Bytes r;
  for (int i = 0; i < 32; ++i) r.v[i] = static_cast<uint8_t>(((bits >> i) & 1u) != 0 ? value : 0);
  return r;
}
inline Bytes Lookup(const Bytes& index, const int8_t (&table)[16]) {
  Bytes r;
  for (int i = 0; i < 32; ++i) r.v[i] = static_cast<uint8_t>(table[index.v[i]]);
  return r;
}
inline void ScaleUnsigned8(const uint8_t* bytes, float factor, float* out) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<float>(bytes[i]) * factor;
}
inline void ScaleSigned8(const int8_t* bytes, float factor, float* out) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<float>(bytes[i]) * factor;
}
inline float HalfAt(const uint8_t* p) {
  uint16_t bits;
  memcpy(&bits, p, 2);
  return HalfToFloat(bits);
}

constexpr int kPanelRows = 4;
constexpr int kTileColumns = 2;
constexpr int kFloatTileRows = 2;
constexpr int kFloatTileColumns = 2;

struct PanelFloat {
  float v[kPanelRows];
};
struct PanelInt {
  int32_t v[kPanelRows];
};

inline PanelFloat LoadPanel(const float* p) {
  PanelFloat r;
  memcpy(r.v, p, sizeof(r.v));
  return r;
}
inline void StorePanel(float* p, const PanelFloat& x) { memcpy(p, x.v, sizeof(x.v)); }
inline PanelFloat ZeroPanel() { return {}; }
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
inline PanelFloat ToFloat(const PanelInt& x) {
  PanelFloat r;
  for (int i = 0; i < kPanelRows; ++i) r.v[i] = static_cast<float>(x.v[i]);
  return r;
}
inline PanelInt Add(PanelInt x, const PanelInt& y) {
  for (int i = 0; i < kPanelRows; ++i) x.v[i] += y.v[i];
  return x;
}
inline PanelInt AddBroadcast(PanelInt x, const void* y) {
  int32_t word;
  memcpy(&word, y, 4);
  for (int32_t& value : x.v) value += word;
  return x;
}
inline PanelFloat GatherHalves(const uint8_t* const (&rows)[kPanelRows], int64_t offset) {
  PanelFloat r;
  for (int i = 0; i < kPanelRows; ++i) r.v[i] = HalfAt(rows[i] + offset);
  return r;
}

template <class F>
constexpr int kCodeOffset = 0;

template <class F>
inline Bytes FinishCodes(Bytes codes) {
  if constexpr (!F::kSigned && F::kOffset != 0) {
    for (uint8_t& code : codes.v) code = static_cast<uint8_t>(code - F::kOffset);
  }
  return codes;
}

inline void StorePanelCodes(const Bytes (&rows)[kPanelRows], uint8_t* out) {
  for (int word = 0; word < 8; ++word) {
    for (int i = 0; i < kPanelRows; ++i) {
      memcpy(out + 4 * (word * kPanelRows + i), rows[i].v + 4 * word, 4);
    }
  }
}

template <int kGroups>
inline void TransposeScales(const float (&in)[kPanelRows][kGroups], float* out) {
  for (int g = 0; g < kGroups; ++g) {
    for (int i = 0; i < kPanelRows; ++i) out[g * kPanelRows + i] = in[i][g];
  }
}

template <class F>
inline void DotRows(const Bytes (&codes)[kPanelRows], const int8_t* x, PanelInt* first,
                    PanelInt* second) {
  for (int i = 0; i < kPanelRows; ++i) {
    int32_t sums[2] = {0, 0};
    for (int e = 0; e < 32; ++e) sums[e / 16] += static_cast<int8_t>(codes[i].v[e]) * x[e];
    first->v[i] = sums[0];
    second->v[i] = sums[1];
  }
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
