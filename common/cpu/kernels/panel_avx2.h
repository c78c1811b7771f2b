/* Integer dot products of a panel of eight weight rows on AVX2. Lane = row.
 *
 * A strip holds sixteen bytes of row s and of row s + 4, so that shuffles inside the two halves of
 * a register are enough to bring four strips to one lane per row. vpmaddubsw adds two products in
 * 16 bits: for unsigned codes up to kMaxCode several such sums fit before they are widened; signed
 * codes take the sign trick and one sum. */
#pragma once

#include "common/cpu/kernels/simd_avx2.h"

namespace weft::cpu::WEFT_ISA {
namespace {

constexpr int kPanelRows = 8;
constexpr int kTileColumns = 4;
constexpr int kFloatTileRows = 2;
constexpr int kFloatTileColumns = 3;

using RowPointers = const uint8_t* const (&)[kPanelRows];

struct PanelFloat {
  __m256 v;
};
struct PanelInt {
  __m256i v;
};
struct Strip {
  __m256i v;
};

WEFT_INLINE PanelFloat LoadPanel(const float* p) { return {_mm256_loadu_ps(p)}; }
WEFT_INLINE void StorePanel(float* p, PanelFloat x) { _mm256_storeu_ps(p, x.v); }
WEFT_INLINE PanelFloat ZeroPanel() { return {_mm256_setzero_ps()}; }
WEFT_INLINE PanelFloat Mul(PanelFloat x, PanelFloat y) { return {_mm256_mul_ps(x.v, y.v)}; }
WEFT_INLINE PanelFloat MulBroadcast(PanelFloat x, const float* y) {
  return {_mm256_mul_ps(x.v, _mm256_broadcast_ss(y))};
}
WEFT_INLINE PanelFloat Fma(PanelFloat x, PanelFloat y, PanelFloat z) {
  return {_mm256_fmadd_ps(x.v, y.v, z.v)};
}
WEFT_INLINE PanelFloat FmaBroadcast(PanelFloat x, const float* y, PanelFloat z) {
  return {_mm256_fmadd_ps(x.v, _mm256_broadcast_ss(y), z.v)};
}
WEFT_INLINE PanelFloat NegatePanel(PanelFloat x) {
  return {_mm256_xor_ps(x.v, _mm256_set1_ps(-0.0f))};
}

WEFT_INLINE __m256i BroadcastWord(const void* p) {
  int32_t word;
  memcpy(&word, p, 4);
  return _mm256_set1_epi32(word);
}
WEFT_INLINE PanelFloat ToFloat(PanelInt x) { return {_mm256_cvtepi32_ps(x.v)}; }
WEFT_INLINE PanelInt AddBroadcast(PanelInt x, const void* y) {
  return {_mm256_add_epi32(x.v, BroadcastWord(y))};
}
WEFT_INLINE PanelInt AddInt(PanelInt x, int32_t y) {
  return {_mm256_add_epi32(x.v, _mm256_set1_epi32(y))};
}
/* (x >> shift) & mask of each lane's 32 bits. */
WEFT_INLINE PanelInt WordBits(PanelInt x, int shift, uint32_t mask) {
  return {_mm256_and_si256(_mm256_srli_epi32(x.v, shift),
                           _mm256_set1_epi32(static_cast<int32_t>(mask)))};
}
/* x | y << shift */
WEFT_INLINE PanelInt OrShifted(PanelInt x, PanelInt y, int shift) {
  return {_mm256_or_si256(x.v, _mm256_slli_epi32(y.v, shift))};
}
/* Byte `index` of each lane, with its sign. */
WEFT_INLINE PanelInt SignedByte(PanelInt x, int index) {
  return {_mm256_srai_epi32(_mm256_slli_epi32(x.v, 24 - 8 * index), 24)};
}
/* The half in the low 16 bits of each lane. */
WEFT_INLINE PanelFloat HalfOfWord(PanelInt x) {
  const __m256i low = _mm256_and_si256(x.v, _mm256_set1_epi32(0xFFFF));
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(packed))};
}
/* The 32 bits at `offset` in every row. (Halves gathered one by one end up in memory first, and the
 * wide load behind the narrow stores stalls.) */
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
  return {_mm256_inserti128_si256(_mm256_castsi128_si256(FourWords(rows, offset)),
                                  FourWords(rows + 4, offset), 1)};
}
/* The two halves at `offset` in every row, as floats. */
WEFT_INLINE __m128i FourHalfPairs(const uint8_t* const* rows, int64_t offset) {
  return _mm_unpacklo_epi32(_mm_unpacklo_epi16(WordAt(rows[0] + offset), WordAt(rows[1] + offset)),
                            _mm_unpacklo_epi16(WordAt(rows[2] + offset), WordAt(rows[3] + offset)));
}
WEFT_INLINE void GatherHalves(RowPointers rows, int64_t offset, PanelFloat* low, PanelFloat* high) {
  const __m128i x = FourHalfPairs(rows, offset), y = FourHalfPairs(rows + 4, offset);
  low->v = _mm256_cvtph_ps(_mm_unpacklo_epi64(x, y));
  high->v = _mm256_cvtph_ps(_mm_unpackhi_epi64(x, y));
}
/* 2^(e - 128) for the eight-bit exponent e in each lane, denormals included; 255 stands for NaN. */
WEFT_INLINE PanelFloat PowerOfExponent(PanelInt e) {
  /* Two factors whose exponents are never too small for a normal number. */
  const __m256i half = _mm256_srli_epi32(e.v, 1);
  const __m256i bias = _mm256_set1_epi32(63);
  const __m256i x = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i y = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(e.v, half), bias), 23);
  const __m256i nan = _mm256_cmpeq_epi32(e.v, _mm256_set1_epi32(255));
  return {_mm256_mul_ps(_mm256_castsi256_ps(_mm256_or_si256(x, nan)), _mm256_castsi256_ps(y))};
}

/* Sixteen bytes at `offset` of rows s and s + 4. */
WEFT_INLINE Strip LoadStrip(RowPointers rows, int64_t offset, int s) {
  const auto* low = reinterpret_cast<const __m128i*>(rows[s] + offset);
  const auto* high = reinterpret_cast<const __m128i*>(rows[s + 4] + offset);
  return {_mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                  _mm_loadu_si128(high), 1)};
}
/* Byte i is (byte i >> shift) & mask; the mask clears what the neighbour shifted in. A negative
 * shift goes left. */
WEFT_INLINE Strip ShiftRightAnd(Strip x, int shift, int mask) {
  const __m256i shifted = shift == 0  ? x.v
                          : shift > 0 ? _mm256_srli_epi16(x.v, shift)
                                      : _mm256_slli_epi16(x.v, -shift);
  return {_mm256_and_si256(shifted, _mm256_set1_epi8(static_cast<char>(mask)))};
}
WEFT_INLINE Strip Or(Strip x, Strip y) { return {_mm256_or_si256(x.v, y.v)}; }
/* Byte i of a row is `value` where bit 16 * half + i of the 32 bits at `at` is set, else 0. */
WEFT_INLINE Strip ExpandBits(RowPointers rows, int64_t at, int half, int s, int value) {
  const auto first = int64_t{4} * s + 2 * half;
  const int64_t repeat = 0x0101010101010101;
  const __m256i bytes = _mm256_setr_epi64x(repeat * first, repeat * (first + 1), repeat * first,
                                           repeat * (first + 1));
  const __m256i spread = _mm256_shuffle_epi8(GatherWords(rows, at).v, bytes);
  const __m256i select = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, select), select);
  return {_mm256_and_si256(set, _mm256_set1_epi8(static_cast<char>(value)))};
}
WEFT_INLINE Strip Lookup(Strip index, const int8_t (&table)[16]) {
  const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), index.v)};
}
/* The sixteen bytes of row s. */
WEFT_INLINE void StoreFirstRow(Strip x, uint8_t* out) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(x.v));
}

/* What has been added to the codes of F that the dot product sees. */
template <class F>
constexpr int kCodeOffset = F::kSigned ? 0 : F::kOffset;

template <class F>
WEFT_INLINE Strip FinishCodes(Strip codes) {
  return codes;
}

/* Word w of every row from the strips 0 to 3. */
WEFT_INLINE void Transpose(const Strip (&strips)[4], PanelInt (&words)[4]) {
  const __m256i a = _mm256_unpacklo_epi32(strips[0].v, strips[1].v);
  const __m256i b = _mm256_unpackhi_epi32(strips[0].v, strips[1].v);
  const __m256i c = _mm256_unpacklo_epi32(strips[2].v, strips[3].v);
  const __m256i d = _mm256_unpackhi_epi32(strips[2].v, strips[3].v);
  words[0].v = _mm256_unpacklo_epi64(a, c);
  words[1].v = _mm256_unpackhi_epi64(a, c);
  words[2].v = _mm256_unpacklo_epi64(b, d);
  words[3].v = _mm256_unpackhi_epi64(b, d);
}
WEFT_INLINE void StoreWords(PanelInt x, uint8_t* out) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), x.v);
}

template <class F>
WEFT_INLINE __m256i PairProducts(__m256i codes, __m256i x) {
  if constexpr (F::kSigned) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(x, codes));
  } else {
    return _mm256_maddubs_epi16(codes, x);
  }
}

/* Whether sums of `products` products of F fit in 16 bits. */
template <class F>
constexpr bool Fits16(int products) {
  return products * F::kMaxCode * 127 <= 32767;
}

/* Words 0 + 1 and 2 + 3 of x, then of y, in each half; each word is a sum of kProducts products. */
template <class F, int kProducts>
WEFT_INLINE __m256i AddNeighbours(__m256i x, __m256i y) {
  if constexpr (Fits16<F>(kProducts)) {
    return _mm256_madd_epi16(_mm256_packs_epi32(x, y), _mm256_set1_epi16(1));
  } else {
    return _mm256_hadd_epi32(x, y);
  }
}
template <class F, int kProducts>
WEFT_INLINE PanelInt SumStrips(const __m256i (&sums)[4]) {
  return {AddNeighbours<F, 2 * kProducts>(AddNeighbours<F, kProducts>(sums[0], sums[1]),
                                          AddNeighbours<F, kProducts>(sums[2], sums[3]))};
}

WEFT_INLINE __m256i BroadcastSixteen(const int8_t* x) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
}

/* Dot products of sixteen codes of each row with x. */
template <class F>
WEFT_INLINE PanelInt DotSixteen(const Strip (&codes)[4], const int8_t* x) {
  const __m256i column = BroadcastSixteen(x);
  __m256i sums[4];
  WEFT_UNROLL(4)
  for (int s = 0; s < 4; ++s) {
    sums[s] = _mm256_madd_epi16(PairProducts<F>(codes[s].v, column), _mm256_set1_epi16(1));
  }
  return SumStrips<F, 4>(sums);
}

/* The same for 32 codes. */
template <class F>
WEFT_INLINE PanelInt DotThirtyTwo(const Strip (&first)[4], const Strip (&second)[4],
                                  const int8_t* x) {
  const __m256i low = BroadcastSixteen(x), high = BroadcastSixteen(x + 16);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sums[4];
  WEFT_UNROLL(4)
  for (int s = 0; s < 4; ++s) {
    const __m256i p = PairProducts<F>(first[s].v, low);
    const __m256i q = PairProducts<F>(second[s].v, high);
    if constexpr (Fits16<F>(4)) {
      sums[s] = _mm256_madd_epi16(_mm256_add_epi16(p, q), ones);
    } else {
      sums[s] = _mm256_add_epi32(_mm256_madd_epi16(p, ones), _mm256_madd_epi16(q, ones));
    }
  }
  return SumStrips<F, 8>(sums);
}

/* Calls use(j, dot of kWords words of every row with the same words of x[j]) for each column j. */
template <class F, int kWords, int kColumns, class Use>
WEFT_INLINE void DotColumns(const uint8_t* codes, const uint8_t* const (&x)[kColumns],
                            int64_t offset, Use use) {
  const auto* words = reinterpret_cast<const __m256i*>(codes);
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (F::kSigned) {
    __m256i sum[kColumns] = {};
    WEFT_UNROLL(8)
    for (int w = 0; w < kWords; ++w) {
      const __m256i code = _mm256_loadu_si256(words + w);
      const __m256i magnitude = _mm256_abs_epi8(code);
      WEFT_UNROLL(8)
      for (int j = 0; j < kColumns; ++j) {
        const __m256i column = _mm256_sign_epi8(BroadcastWord(x[j] + offset + 4 * w), code);
        const __m256i pairs = _mm256_maddubs_epi16(magnitude, column);
        sum[j] = _mm256_add_epi32(sum[j], _mm256_madd_epi16(pairs, ones));
      }
    }
    WEFT_UNROLL(8)
    for (int j = 0; j < kColumns; ++j) use(j, PanelInt{sum[j]});
  } else {
    constexpr int kDepth = Fits16<F>(2 * kWords) ? kWords : Fits16<F>(8) ? 4 : 2;
    static_assert(Fits16<F>(2 * kDepth) && kWords % kDepth == 0);
    __m256i code[kWords];
    WEFT_UNROLL(8)
    for (int w = 0; w < kWords; ++w) code[w] = _mm256_loadu_si256(words + w);
    WEFT_UNROLL(8)
    for (int j = 0; j < kColumns; ++j) {
      const uint8_t* column = x[j] + offset;
      __m256i sum = _mm256_setzero_si256();
      WEFT_UNROLL(8)
      for (int w = 0; w < kWords; w += kDepth) {
        __m256i pairs = _mm256_maddubs_epi16(code[w], BroadcastWord(column + 4 * w));
        WEFT_UNROLL(8)
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
