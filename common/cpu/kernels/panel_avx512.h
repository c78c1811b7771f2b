/* Integer dot products of a panel of sixteen weight rows on AVX-512 with VNNI; see panel_avx2.h. A
 * strip holds sixteen bytes of rows s, s + 4, s + 8 and s + 12. Codes are unsigned: signed ones get
 * 128 added, which the column's correction takes back. */
#pragma once

#include "common/cpu/kernels/simd_avx512.h"

namespace weft::cpu::WEFT_ISA {
namespace {

constexpr int kPanelRows = 16;
constexpr int kTileColumns = 8;
constexpr int kFloatTileRows = 4;
constexpr int kFloatTileColumns = 4;

using RowPointers = const uint8_t* const (&)[kPanelRows];

struct PanelFloat {
  __m512 v;
};
struct PanelInt {
  __m512i v;
};
struct Strip {
  __m512i v;
};

WEFT_INLINE PanelFloat LoadPanel(const float* p) { return {_mm512_loadu_ps(p)}; }
WEFT_INLINE void StorePanel(float* p, PanelFloat x) { _mm512_storeu_ps(p, x.v); }
WEFT_INLINE PanelFloat ZeroPanel() { return {_mm512_setzero_ps()}; }
WEFT_INLINE PanelFloat Mul(PanelFloat x, PanelFloat y) { return {_mm512_mul_ps(x.v, y.v)}; }
WEFT_INLINE PanelFloat MulBroadcast(PanelFloat x, const float* y) {
  return {_mm512_mul_ps(x.v, _mm512_set1_ps(*y))};
}
WEFT_INLINE PanelFloat Fma(PanelFloat x, PanelFloat y, PanelFloat z) {
  return {_mm512_fmadd_ps(x.v, y.v, z.v)};
}
WEFT_INLINE PanelFloat FmaBroadcast(PanelFloat x, const float* y, PanelFloat z) {
  return {_mm512_fmadd_ps(x.v, _mm512_set1_ps(*y), z.v)};
}
WEFT_INLINE PanelFloat NegatePanel(PanelFloat x) { return {XorBits(Vec{x.v}, 0x80000000u).v}; }

WEFT_INLINE __m512i BroadcastWord(const void* p) {
  int32_t word;
  memcpy(&word, p, 4);
  return _mm512_set1_epi32(word);
}
WEFT_INLINE PanelFloat ToFloat(PanelInt x) { return {_mm512_cvtepi32_ps(x.v)}; }
WEFT_INLINE PanelInt AddBroadcast(PanelInt x, const void* y) {
  return {_mm512_add_epi32(x.v, BroadcastWord(y))};
}
WEFT_INLINE PanelInt AddInt(PanelInt x, int32_t y) {
  return {_mm512_add_epi32(x.v, _mm512_set1_epi32(y))};
}
WEFT_INLINE PanelInt WordBits(PanelInt x, int shift, uint32_t mask) {
  return {_mm512_and_si512(_mm512_srli_epi32(x.v, static_cast<unsigned>(shift)),
                           _mm512_set1_epi32(static_cast<int32_t>(mask)))};
}
WEFT_INLINE PanelInt OrShifted(PanelInt x, PanelInt y, int shift) {
  return {_mm512_or_si512(x.v, _mm512_slli_epi32(y.v, static_cast<unsigned>(shift)))};
}
WEFT_INLINE PanelInt SignedByte(PanelInt x, int index) {
  const auto shift = static_cast<unsigned>(24 - 8 * index);
  return {_mm512_srai_epi32(_mm512_slli_epi32(x.v, shift), 24)};
}
WEFT_INLINE PanelFloat HalfOfWord(PanelInt x) {
  return {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(x.v))};
}
WEFT_INLINE __m512i JoinQuarters(__m128i a, __m128i b, __m128i c, __m128i d) {
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
WEFT_INLINE __m128i WordAt(const uint8_t* p) {
  int32_t word;
  memcpy(&word, p, 4);
  return _mm_cvtsi32_si128(word);
}
WEFT_INLINE __m128i FourWords(const uint8_t* const* rows, int64_t offset) {
  return _mm_unpacklo_epi64(_mm_unpacklo_epi32(WordAt(rows[0] + offset), WordAt(rows[1] + offset)),
                            _mm_unpacklo_epi32(WordAt(rows[2] + offset), WordAt(rows[3] + offset)));
}
WEFT_INLINE PanelInt GatherWords(RowPointers rows, int64_t offset) {
  return {JoinQuarters(FourWords(rows, offset), FourWords(rows + 4, offset),
                       FourWords(rows + 8, offset), FourWords(rows + 12, offset))};
}
WEFT_INLINE void GatherHalves(RowPointers rows, int64_t offset, PanelFloat* low, PanelFloat* high) {
  const PanelInt words = GatherWords(rows, offset);
  *low = HalfOfWord(words);
  *high = HalfOfWord(WordBits(words, 16, 0xFFFFu));
}
WEFT_INLINE PanelFloat PowerOfExponent(PanelInt e) {
  const PanelInt half = WordBits(e, 1, 127);
  const PanelInt rest = {_mm512_sub_epi32(e.v, half.v)};
  const Vec x = ShiftToExponent(FromBits(AddInt(half, 63).v));
  const Vec y = ShiftToExponent(FromBits(AddInt(rest, 63).v));
  const __mmask16 is_nan = _mm512_cmpeq_epi32_mask(e.v, _mm512_set1_epi32(255));
  return {_mm512_mask_blend_ps(is_nan, Mul(x, y).v, _mm512_set1_ps(__builtin_nanf("")))};
}

WEFT_INLINE __m128i SixteenAt(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
WEFT_INLINE Strip LoadStrip(RowPointers rows, int64_t offset, int s) {
  return {JoinQuarters(SixteenAt(rows[s] + offset), SixteenAt(rows[s + 4] + offset),
                       SixteenAt(rows[s + 8] + offset), SixteenAt(rows[s + 12] + offset))};
}
WEFT_INLINE Strip ShiftRightAnd(Strip x, int shift, int mask) {
  const __m512i shifted = shift == 0  ? x.v
                          : shift > 0 ? _mm512_srli_epi16(x.v, static_cast<unsigned>(shift))
                                      : _mm512_slli_epi16(x.v, static_cast<unsigned>(-shift));
  return {_mm512_and_si512(shifted, _mm512_set1_epi8(static_cast<char>(mask)))};
}
WEFT_INLINE Strip Or(Strip x, Strip y) { return {_mm512_or_si512(x.v, y.v)}; }
WEFT_INLINE Strip ExpandBits(RowPointers rows, int64_t at, int half, int s, int value) {
  uint64_t bits = 0;
  for (int i = 0; i < 4; ++i) {
    uint16_t sixteen;
    memcpy(&sixteen, rows[s + 4 * i] + at + 2 * half, 2);
    bits |= static_cast<uint64_t>(sixteen) << (16 * i);
  }
  return {_mm512_maskz_mov_epi8(bits, _mm512_set1_epi8(static_cast<char>(value)))};
}
WEFT_INLINE Strip Lookup(Strip index, const int8_t (&table)[16]) {
  const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm512_shuffle_epi8(JoinQuarters(entries, entries, entries, entries), index.v)};
}
WEFT_INLINE void StoreFirstRow(Strip x, uint8_t* out) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_castsi512_si128(x.v));
}

template <class F>
constexpr int kCodeOffset = F::kSigned ? 128 : F::kOffset;

template <class F>
WEFT_INLINE Strip FinishCodes(Strip codes) {
  if constexpr (F::kSigned) {
    return {_mm512_xor_si512(codes.v, _mm512_set1_epi8(static_cast<char>(0x80)))};
  }
  return codes;
}

WEFT_INLINE __m512i UnpackLow32(__m512i x, __m512i y) { return _mm512_unpacklo_epi32(x, y); }
WEFT_INLINE __m512i UnpackHigh32(__m512i x, __m512i y) { return _mm512_unpackhi_epi32(x, y); }
WEFT_INLINE __m512i UnpackLow64(__m512i x, __m512i y) { return _mm512_unpacklo_epi64(x, y); }
WEFT_INLINE __m512i UnpackHigh64(__m512i x, __m512i y) { return _mm512_unpackhi_epi64(x, y); }
WEFT_INLINE void Transpose(const Strip (&strips)[4], PanelInt (&words)[4]) {
  const __m512i a = UnpackLow32(strips[0].v, strips[1].v);
  const __m512i b = UnpackHigh32(strips[0].v, strips[1].v);
  const __m512i c = UnpackLow32(strips[2].v, strips[3].v);
  const __m512i d = UnpackHigh32(strips[2].v, strips[3].v);
  words[0].v = UnpackLow64(a, c);
  words[1].v = UnpackHigh64(a, c);
  words[2].v = UnpackLow64(b, d);
  words[3].v = UnpackHigh64(b, d);
}
WEFT_INLINE void StoreWords(PanelInt x, uint8_t* out) { _mm512_storeu_si512(out, x.v); }

WEFT_INLINE __m512i BroadcastSixteen(const int8_t* x) {
  const __m128i v = SixteenAt(reinterpret_cast<const uint8_t*>(x));
  return JoinQuarters(v, v, v, v);
}
/* The sum of the four words of each row. */
WEFT_INLINE PanelInt SumStrips(const Strip (&sums)[4]) {
  PanelInt words[4];
  Transpose(sums, words);
  return {_mm512_add_epi32(_mm512_add_epi32(words[0].v, words[1].v),
                           _mm512_add_epi32(words[2].v, words[3].v))};
}

template <class F>
WEFT_INLINE PanelInt DotSixteen(const Strip (&codes)[4], const int8_t* x) {
  const __m512i column = BroadcastSixteen(x);
  Strip sums[4];
  WEFT_UNROLL(4)
  for (int s = 0; s < 4; ++s) {
    sums[s].v = _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes[s].v, column);
  }
  return SumStrips(sums);
}

template <class F>
WEFT_INLINE PanelInt DotThirtyTwo(const Strip (&first)[4], const Strip (&second)[4],
                                  const int8_t* x) {
  const __m512i low = BroadcastSixteen(x), high = BroadcastSixteen(x + 16);
  Strip sums[4];
  WEFT_UNROLL(4)
  for (int s = 0; s < 4; ++s) {
    const __m512i half = _mm512_dpbusd_epi32(_mm512_setzero_si512(), first[s].v, low);
    sums[s].v = _mm512_dpbusd_epi32(half, second[s].v, high);
  }
  return SumStrips(sums);
}

template <class F, int kWords, int kColumns, class Use>
WEFT_INLINE void DotColumns(const uint8_t* codes, const uint8_t* const (&x)[kColumns],
                            int64_t offset, Use use) {
  __m512i code[kWords];
  WEFT_UNROLL(8)
  for (int w = 0; w < kWords; ++w) code[w] = _mm512_loadu_si512(codes + 64 * w);
  WEFT_UNROLL(8)
  for (int j = 0; j < kColumns; ++j) {
    const uint8_t* column = x[j] + offset;
    __m512i sum = _mm512_setzero_si512();
    WEFT_UNROLL(8)
    for (int w = 0; w < kWords; ++w) {
      sum = _mm512_dpbusd_epi32(sum, code[w], BroadcastWord(column + 4 * w));
    }
    use(j, PanelInt{sum});
  }
}

}  // namespace
}  // namespace weft::cpu::WEFT_ISA
