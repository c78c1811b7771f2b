/* Sixteen floats as two AVX2 registers. Every instruction set offers the same functions on sixteen
 * lanes, so the kernel bodies are written once and give the same bits everywhere. */
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "common/cpu/kernels/inlining.h"

namespace weft::cpu::WEFT_ISA {
namespace {

struct Vec {
  __m256 a, b;
};
struct Mask {
  __m256 a, b;
};

WEFT_INLINE Vec Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
WEFT_INLINE void Store(float* p, Vec v) {
  _mm256_storeu_ps(p, v.a);
  _mm256_storeu_ps(p + 8, v.b);
}
WEFT_INLINE Vec Broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
WEFT_INLINE Vec Add(Vec x, Vec y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
WEFT_INLINE Vec Sub(Vec x, Vec y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
WEFT_INLINE Vec Mul(Vec x, Vec y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
WEFT_INLINE Vec Div(Vec x, Vec y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
WEFT_INLINE Vec Sqrt(Vec x) { return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)}; }
/* x * y + z, rounded once. */
WEFT_INLINE Vec Fma(Vec x, Vec y, Vec z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
/* A NaN in y passes; one in x does not. */
WEFT_INLINE Vec Max(Vec x, Vec y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
WEFT_INLINE Vec Min(Vec x, Vec y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
WEFT_INLINE Vec AndBits(Vec x, uint32_t bits) {
  const __m256 m = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int32_t>(bits)));
  return {_mm256_and_ps(x.a, m), _mm256_and_ps(x.b, m)};
}
WEFT_INLINE Vec XorBits(Vec x, uint32_t bits) {
  const __m256 m = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int32_t>(bits)));
  return {_mm256_xor_ps(x.a, m), _mm256_xor_ps(x.b, m)};
}
WEFT_INLINE Vec OrBits(Vec x, Vec y) { return {_mm256_or_ps(x.a, y.a), _mm256_or_ps(x.b, y.b)}; }
/* The bit patterns moved left by 23. */
WEFT_INLINE Vec ShiftToExponent(Vec x) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x.a), 23)),
          _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x.b), 23))};
}
WEFT_INLINE Vec Truncate(Vec x) {
  return {_mm256_round_ps(x.a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC),
          _mm256_round_ps(x.b, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
}

WEFT_INLINE Mask Less(Vec x, Vec y) {
  return {_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)};
}
WEFT_INLINE Mask Equal(Vec x, Vec y) {
  return {_mm256_cmp_ps(x.a, y.a, _CMP_EQ_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_EQ_OQ)};
}
WEFT_INLINE Vec Select(Mask m, Vec yes, Vec no) {
  return {_mm256_blendv_ps(no.a, yes.a, m.a), _mm256_blendv_ps(no.b, yes.b, m.b)};
}
WEFT_INLINE bool All(Mask m) { return _mm256_movemask_ps(_mm256_and_ps(m.a, m.b)) == 255; }

/* Lanes i and i + 8, then i + 4, i + 2 and i + 1. */
WEFT_INLINE float ReduceAdd(Vec v) {
  const __m256 s8 = _mm256_add_ps(v.a, v.b);
  const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
  const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
  return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}
WEFT_INLINE float ReduceMax(Vec v) {
  const __m256 m8 = _mm256_max_ps(v.a, v.b);
  const __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
  const __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
  return _mm_cvtss_f32(_mm_max_ss(m2, _mm_movehdup_ps(m2)));
}

WEFT_INLINE Vec LoadHalf(const void* p) {
  const auto* v = static_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(v)), _mm256_cvtph_ps(_mm_loadu_si128(v + 1))};
}
WEFT_INLINE float HalfAt(const void* p) {
  uint16_t bits;
  memcpy(&bits, p, 2);
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}
WEFT_INLINE void StoreHalf(void* p, Vec v) {
  auto* out = static_cast<__m128i*>(p);
  _mm_storeu_si128(out, _mm256_cvtps_ph(v.a, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(out + 1, _mm256_cvtps_ph(v.b, _MM_FROUND_TO_NEAREST_INT));
}
WEFT_INLINE Vec LoadBFloat(const void* p) {
  const auto* v = static_cast<const __m128i*>(p);
  const __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128(v));
  const __m256i b = _mm256_cvtepu16_epi32(_mm_loadu_si128(v + 1));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))};
}
WEFT_INLINE __m256i BFloatBits(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(
      _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256 is_nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(is_nan));
}
WEFT_INLINE void StoreBFloat(void* p, Vec v) {
  const __m256i packed = _mm256_packus_epi32(BFloatBits(v.a), BFloatBits(v.b));
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xD8));
}
WEFT_INLINE Vec LoadInt8(const int8_t* p) {
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(v, 8)))};
}
/* v holds whole numbers from -128 to 127. */
WEFT_INLINE void StoreInt8(int8_t* p, Vec v) {
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packs_epi32(_mm256_cvtps_epi32(v.a), _mm256_cvtps_epi32(v.b)), 0xD8);
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}

/* Eight doubles. */
struct VecDouble {
  __m256d a, b;
};
WEFT_INLINE VecDouble ZeroDouble() { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
/* sum[i] += x[i]^2, then x[i + 8]^2. */
WEFT_INLINE VecDouble AddSquares(VecDouble sum, Vec x) {
  const __m256d x0 = _mm256_cvtps_pd(_mm256_castps256_ps128(x.a));
  const __m256d x1 = _mm256_cvtps_pd(_mm256_extractf128_ps(x.a, 1));
  const __m256d x2 = _mm256_cvtps_pd(_mm256_castps256_ps128(x.b));
  const __m256d x3 = _mm256_cvtps_pd(_mm256_extractf128_ps(x.b, 1));
  sum.a = _mm256_add_pd(_mm256_add_pd(sum.a, _mm256_mul_pd(x0, x0)), _mm256_mul_pd(x2, x2));
  sum.b = _mm256_add_pd(_mm256_add_pd(sum.b, _mm256_mul_pd(x1, x1)), _mm256_mul_pd(x3, x3));
  return sum;
}
WEFT_INLINE double ReduceAdd(VecDouble v) {
  double s[8];
  _mm256_storeu_pd(s, v.a);
  _mm256_storeu_pd(s + 4, v.b);
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* De-interleaves 32 floats into those at even and at odd places, and back. */
WEFT_INLINE __m256 EvenHalf(__m256 x, __m256 y) {
  return _mm256_castpd_ps(
      _mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(x, y, 0x88)), 0xD8));
}
WEFT_INLINE __m256 OddHalf(__m256 x, __m256 y) {
  return _mm256_castpd_ps(
      _mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(x, y, 0xDD)), 0xD8));
}
WEFT_INLINE void Deinterleave(Vec x, Vec y, Vec* even, Vec* odd) {
  *even = {EvenHalf(x.a, x.b), EvenHalf(y.a, y.b)};
  *odd = {OddHalf(x.a, x.b), OddHalf(y.a, y.b)};
}
WEFT_INLINE void InterleaveHalf(__m256 e, __m256 o, __m256* first, __m256* second) {
  const __m256 low = _mm256_unpacklo_ps(e, o);
  const __m256 high = _mm256_unpackhi_ps(e, o);
  *first = _mm256_permute2f128_ps(low, high, 0x20);
  *second = _mm256_permute2f128_ps(low, high, 0x31);
}
WEFT_INLINE void Interleave(Vec even, Vec odd, Vec* x, Vec* y) {
  InterleaveHalf(even.a, odd.a, &x->a, &x->b);
  InterleaveHalf(even.b, odd.b, &y->a, &y->b);
}

}  // namespace
}  // namespace weft::cpu::WEFT_ISA
