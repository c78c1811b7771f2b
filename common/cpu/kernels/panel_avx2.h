/* Integer dot products of a panel of eight weight rows on AVX2. Lane = row.
 *
 * Codes are unsigned where a format allows, else signed. vpmaddubsw adds two products in 16 bits:
 * for unsigned codes up to kMaxCode several such sums fit before they are widened; signed codes
 * take the sign trick and one sum. */
#pragma once

#include "common/cpu/kernels/bytes_avx2.h"

namespace weft::cpu::WEFT_ISA {
namespace {

constexpr int kPanelRows = 8;
constexpr int kTileColumns = 4;
constexpr int kFloatTileRows = 2;
constexpr int kFloatTileColumns = 3;

struct PanelFloat {
  __m256 v;
};
struct PanelInt {
  __m256i v;
};

WEFT_INLINE PanelFloat LoadPanel(const float* p) { return {_mm256_loadu_ps(p)}; }
WEFT_INLINE void StorePanel(float* p, PanelFloat x) { _mm256_storeu_ps(p, x.v); }
WEFT_INLINE PanelFloat ZeroPanel() { return {_mm256_setzero_ps()}; }
WEFT_INLINE PanelFloat MulBroadcast(PanelFloat x, const float* y) {
  return {_mm256_mul_ps(x.v, _mm256_broadcast_ss(y))};
}
WEFT_INLINE PanelFloat Fma(PanelFloat x, PanelFloat y, PanelFloat z) {
  return {_mm256_fmadd_ps(x.v, y.v, z.v)};
}
WEFT_INLINE PanelFloat FmaBroadcast(PanelFloat x, const float* y, PanelFloat z) {
  return {_mm256_fmadd_ps(x.v, _mm256_broadcast_ss(y), z.v)};
}
WEFT_INLINE PanelFloat ToFloat(PanelInt x) { return {_mm256_cvtepi32_ps(x.v)}; }
WEFT_INLINE PanelInt Add(PanelInt x, PanelInt y) { return {_mm256_add_epi32(x.v, y.v)}; }
WEFT_INLINE __m256i BroadcastWord(const void* p) {
  int32_t word;
  memcpy(&word, p, 4);
  return _mm256_set1_epi32(word);
}
WEFT_INLINE PanelInt AddBroadcast(PanelInt x, const void* y) {
  return {_mm256_add_epi32(x.v, BroadcastWord(y))};
}
WEFT_INLINE PanelFloat GatherHalves(const uint8_t* const (&rows)[kPanelRows], int64_t offset) {
  return {GatherHalves8(rows, offset)};
}

/* What has been added to the codes of F that the dot product sees. */
template <class F>
constexpr int kCodeOffset = F::kSigned ? 0 : F::kOffset;

template <class F>
WEFT_INLINE Bytes FinishCodes(Bytes codes) {
  return codes;
}

/* Eight words of each row, word by word for all rows. */
WEFT_INLINE void StorePanelCodes(const Bytes (&rows)[kPanelRows], uint8_t* out) {
  __m256i m[8];
  for (int i = 0; i < 8; ++i) m[i] = rows[i].v;
  Transpose(m);
  for (int i = 0; i < 8; ++i) _mm256_storeu_si256(reinterpret_cast<__m256i*>(out) + i, m[i]);
}

/* [group][row] from [row][group]. */
template <int kGroups>
WEFT_INLINE void TransposeScales(const float (&in)[kPanelRows][kGroups], float* out) {
  for (int g = 0; g < kGroups; g += 8) {
    __m256i m[8];
    for (int i = 0; i < 8; ++i) {
      m[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in[i] + g));
    }
    Transpose(m);
    for (int i = 0; i < 8; ++i) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + (g + i) * kPanelRows), m[i]);
    }
  }
}

template <class F>
WEFT_INLINE __m256i PairProducts(__m256i codes, __m256i x) {
  if constexpr (F::kSigned) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(x, codes));
  } else {
    return _mm256_maddubs_epi16(codes, x);
  }
}

/* Dot products of 32 codes of each row with x, separately for the first and the last 16. */
template <class F>
WEFT_INLINE void DotRows(const Bytes (&codes)[kPanelRows], const int8_t* x, PanelInt* first,
                         PanelInt* second) {
  const __m256i column = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i p[8];
  for (int i = 0; i < 8; ++i) {
    p[i] = _mm256_madd_epi16(PairProducts<F>(codes[i].v, column), ones);
  }
  SumRows(p, &first->v, &second->v);
}

/* Calls use(j, dot of kWords words of every row with the same words of x[j]) for each column j. */
template <class F, int kWords, int kColumns, class Use>
WEFT_INLINE void DotColumns(const uint8_t* codes, const uint8_t* const (&x)[kColumns],
                            int64_t offset, Use use) {
  const auto* words = reinterpret_cast<const __m256i*>(codes);
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (F::kSigned) {
    __m256i sum[kColumns] = {};
#pragma GCC unroll 8
    for (int w = 0; w < kWords; ++w) {
      const __m256i code = _mm256_loadu_si256(words + w);
      const __m256i magnitude = _mm256_abs_epi8(code);
#pragma GCC unroll 8
      for (int j = 0; j < kColumns; ++j) {
        const __m256i column = _mm256_sign_epi8(BroadcastWord(x[j] + offset + 4 * w), code);
        const __m256i pairs = _mm256_maddubs_epi16(magnitude, column);
        sum[j] = _mm256_add_epi32(sum[j], _mm256_madd_epi16(pairs, ones));
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) use(j, PanelInt{sum[j]});
  } else {
    constexpr int kFit = 32767 / (254 * F::kMaxCode);
    constexpr int kDepth = kFit >= kWords ? kWords : kFit >= 4 ? 4 : 2;
    static_assert(kFit >= 2 && kWords % kDepth == 0);
    __m256i code[kWords];
#pragma GCC unroll 8
    for (int w = 0; w < kWords; ++w) code[w] = _mm256_loadu_si256(words + w);
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) {
      const uint8_t* column = x[j] + offset;
      __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 8
      for (int w = 0; w < kWords; w += kDepth) {
        __m256i pairs = _mm256_maddubs_epi16(code[w], BroadcastWord(column + 4 * w));
#pragma GCC unroll 8
        for (int i = 1; i < kDepth; ++i) {
          pairs = _mm256_add_epi16(
              pairs, _mm256_maddubs_epi16(code[w + i], BroadcastWord(column + 4 * (w + i))));
        }
        const __m256i wide = _mm256_madd_epi16(pairs, ones);
        sum = w == 0 ? wide : _mm256_add_epi32(sum, wide);
      }
      use(j, PanelInt{sum});
    }
  }
}

}  // namespace
}  // namespace weft::cpu::WEFT_ISA
