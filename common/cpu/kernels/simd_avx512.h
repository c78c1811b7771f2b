/* Sixteen floats in one AVX-512 register; see simd_avx2.h for what each function does. */
#pragma once

#ifndef WEFT_AVX512_INTRINSICS /* a test brings its own */
#include <immintrin.h>
#endif
#include <stdint.h>
#include <string.h>

#include "common/cpu/kernels/inlining.h"

namespace weft::cpu::WEFT_ISA {
namespace {

struct Vec {
  __m512 v;
};
struct Mask {
  __mmask16 m;
};

WEFT_INLINE __m512i BitsOf(Vec x) { return _mm512_castps_si512(x.v); }
WEFT_INLINE Vec FromBits(__m512i bits) { return {_mm512_castsi512_ps(bits)}; }

WEFT_INLINE Vec Load(const float* p) { return {_mm512_loadu_ps(p)}; }
WEFT_INLINE void Store(float* p, Vec v) { _mm512_storeu_ps(p, v.v); }
WEFT_INLINE Vec Broadcast(float x) { return {_mm512_set1_ps(x)}; }
WEFT_INLINE Vec Add(Vec x, Vec y) { return {_mm512_add_ps(x.v, y.v)}; }
WEFT_INLINE Vec Sub(Vec x, Vec y) { return {_mm512_sub_ps(x.v, y.v)}; }
WEFT_INLINE Vec Mul(Vec x, Vec y) { return {_mm512_mul_ps(x.v, y.v)}; }
WEFT_INLINE Vec Div(Vec x, Vec y) { return {_mm512_div_ps(x.v, y.v)}; }
WEFT_INLINE Vec Sqrt(Vec x) { return {_mm512_sqrt_ps(x.v)}; }
WEFT_INLINE Vec Fma(Vec x, Vec y, Vec z) { return {_mm512_fmadd_ps(x.v, y.v, z.v)}; }
WEFT_INLINE Vec Max(Vec x, Vec y) { return {_mm512_max_ps(x.v, y.v)}; }
WEFT_INLINE Vec Min(Vec x, Vec y) { return {_mm512_min_ps(x.v, y.v)}; }
WEFT_INLINE Vec AndBits(Vec x, uint32_t bits) {
  return FromBits(_mm512_and_si512(BitsOf(x), _mm512_set1_epi32(static_cast<int32_t>(bits))));
}
WEFT_INLINE Vec XorBits(Vec x, uint32_t bits) {
  return FromBits(_mm512_xor_si512(BitsOf(x), _mm512_set1_epi32(static_cast<int32_t>(bits))));
}
WEFT_INLINE Vec OrBits(Vec x, Vec y) { return FromBits(_mm512_or_si512(BitsOf(x), BitsOf(y))); }
WEFT_INLINE Vec ShiftToExponent(Vec x) { return FromBits(_mm512_slli_epi32(BitsOf(x), 23)); }
WEFT_INLINE Vec Truncate(Vec x) {
  return {_mm512_roundscale_ps(x.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
}

WEFT_INLINE Mask Less(Vec x, Vec y) { return {_mm512_cmp_ps_mask(x.v, y.v, _CMP_LT_OQ)}; }
WEFT_INLINE Mask Equal(Vec x, Vec y) { return {_mm512_cmp_ps_mask(x.v, y.v, _CMP_EQ_OQ)}; }
WEFT_INLINE Vec Select(Mask m, Vec yes, Vec no) { return {_mm512_mask_blend_ps(m.m, no.v, yes.v)}; }
WEFT_INLINE bool All(Mask m) { return m.m == 0xFFFF; }

WEFT_INLINE __m256 LowHalf(Vec x) { return _mm512_castps512_ps256(x.v); }
WEFT_INLINE __m256 HighHalf(Vec x) { return _mm512_extractf32x8_ps(x.v, 1); }
WEFT_INLINE Vec Join(__m256 low, __m256 high) {
  return {_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1)};
}
WEFT_INLINE float ReduceAdd(Vec v) {
  const __m256 s8 = _mm256_add_ps(LowHalf(v), HighHalf(v));
  const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
  const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
  return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}
WEFT_INLINE float ReduceMax(Vec v) {
  const __m256 m8 = _mm256_max_ps(LowHalf(v), HighHalf(v));
  const __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
  const __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
  return _mm_cvtss_f32(_mm_max_ss(m2, _mm_movehdup_ps(m2)));
}

WEFT_INLINE __m256i LoadSixteenHalves(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
WEFT_INLINE Vec LoadHalf(const void* p) { return {_mm512_cvtph_ps(LoadSixteenHalves(p))}; }
WEFT_INLINE float HalfAt(const void* p) {
  uint16_t bits;
  memcpy(&bits, p, 2);
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}
WEFT_INLINE void StoreHalf(void* p, Vec v) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtps_ph(v.v, _MM_FROUND_TO_NEAREST_INT));
}
WEFT_INLINE __m512i WidenWords(__m256i x) { return _mm512_cvtepu16_epi32(x); }
WEFT_INLINE Vec LoadBFloat(const void* p) {
  return FromBits(_mm512_slli_epi32(WidenWords(LoadSixteenHalves(p)), 16));
}
WEFT_INLINE void StoreBFloat(void* p, Vec v) {
  const __m512i bits = BitsOf(v);
  const __m512i high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
  const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(v.v, v.v, _CMP_UNORD_Q);
  const __m512i result = _mm512_mask_blend_epi32(is_nan, rounded, quiet);
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(result));
}
WEFT_INLINE Vec LoadInt8(const int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}
WEFT_INLINE void StoreInt8(int8_t* p, Vec v) {
  const __m512i words = _mm512_cvtps_epi32(v.v);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(words));
}

struct VecDouble {
  __m512d v;
};
WEFT_INLINE VecDouble ZeroDouble() { return {_mm512_setzero_pd()}; }
WEFT_INLINE VecDouble AddSquares(VecDouble sum, Vec x) {
  const __m512d low = _mm512_cvtps_pd(LowHalf(x));
  const __m512d high = _mm512_cvtps_pd(HighHalf(x));
  sum.v = _mm512_add_pd(sum.v, _mm512_mul_pd(low, low));
  return {_mm512_add_pd(sum.v, _mm512_mul_pd(high, high))};
}
WEFT_INLINE double ReduceAdd(VecDouble v) {
  double s[8];
  _mm512_storeu_pd(s, v.v);
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

WEFT_INLINE __m512i Index(int first, int step) {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm512_add_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(step)),
                          _mm512_set1_epi32(first));
}
WEFT_INLINE void Deinterleave(Vec x, Vec y, Vec* even, Vec* odd) {
  even->v = _mm512_permutex2var_ps(x.v, Index(0, 2), y.v);
  odd->v = _mm512_permutex2var_ps(x.v, Index(1, 2), y.v);
}
WEFT_INLINE void Interleave(Vec even, Vec odd, Vec* x, Vec* y) {
  const __m512i first = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
  x->v = _mm512_permutex2var_ps(even.v, first, odd.v);
  y->v = _mm512_permutex2var_ps(even.v, second, odd.v);
}

}  // namespace
}  // namespace weft::cpu::WEFT_ISA
