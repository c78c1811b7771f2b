/* Thirty-two bytes in one AVX2 register: unpacking of weight codes, for the AVX2 and the AVX-512
 * kernels. */
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

namespace weft::cpu::WEFT_ISA {
namespace {

struct Bytes {
  __m256i v;
};

WEFT_INLINE Bytes LoadBytes(const void* p) {
  return {_mm256_loadu_si256(static_cast<const __m256i*>(p))};
}
/* Sixteen bytes to their low nibbles, then their high ones. */
WEFT_INLINE Bytes Nibbles(const uint8_t* p) {
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m256i both = _mm256_broadcastsi128_si256(packed);
  const __m256i shifted = _mm256_srlv_epi64(both, _mm256_setr_epi64x(0, 0, 4, 4));
  return {_mm256_and_si256(shifted, _mm256_set1_epi8(15))};
}
/* Byte i is (byte i >> shift) & mask; the mask clears what the neighbour shifted in. */
WEFT_INLINE Bytes ShiftRightAnd(Bytes x, int shift, int mask) {
  return {
      _mm256_and_si256(_mm256_srli_epi16(x.v, shift), _mm256_set1_epi8(static_cast<char>(mask)))};
}
/* No bit may leave its byte. */
WEFT_INLINE Bytes ShiftLeft(Bytes x, int shift) { return {_mm256_slli_epi16(x.v, shift)}; }
WEFT_INLINE Bytes Or(Bytes x, Bytes y) { return {_mm256_or_si256(x.v, y.v)}; }
/* Byte i is `value` where bit i is set, else 0. */
WEFT_INLINE Bytes ExpandBits(uint32_t bits, int value) {
  const __m256i spread = _mm256_shuffle_epi8(
      _mm256_set1_epi32(static_cast<int32_t>(bits)),
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
  const __m256i select = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, select), select);
  return {_mm256_and_si256(set, _mm256_set1_epi8(static_cast<char>(value)))};
}
WEFT_INLINE Bytes Lookup(Bytes index, const int8_t (&table)[16]) {
  const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), index.v)};
}

/* Transposes an 8 x 8 matrix of 32-bit words. */
WEFT_INLINE void Transpose(__m256i (&m)[8]) {
  __m256i t[8], u[8];
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_epi32(m[2 * i], m[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_epi32(m[2 * i], m[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    u[4 * i] = _mm256_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    u[4 * i + 1] = _mm256_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    u[4 * i + 2] = _mm256_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    u[4 * i + 3] = _mm256_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    m[i] = _mm256_permute2x128_si256(u[i], u[i + 4], 0x20);
    m[i + 4] = _mm256_permute2x128_si256(u[i], u[i + 4], 0x31);
  }
}

/* Sums of the 32-bit words of eight rows: of the first four words, and of the last four. Lane =
 * row. */
WEFT_INLINE void SumRows(const __m256i (&p)[8], __m256i* first, __m256i* second) {
  const __m256i low =
      _mm256_hadd_epi32(_mm256_hadd_epi32(p[0], p[1]), _mm256_hadd_epi32(p[2], p[3]));
  const __m256i high =
      _mm256_hadd_epi32(_mm256_hadd_epi32(p[4], p[5]), _mm256_hadd_epi32(p[6], p[7]));
  *first = _mm256_permute2x128_si256(low, high, 0x20);
  *second = _mm256_permute2x128_si256(low, high, 0x31);
}

/* out[i] = bytes[i] * factor for eight scales. */
WEFT_INLINE void ScaleUnsigned8(const uint8_t* bytes, float factor, float* out) {
  const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
  const __m256 f = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(b));
  _mm256_storeu_ps(out, _mm256_mul_ps(f, _mm256_set1_ps(factor)));
}
WEFT_INLINE void ScaleSigned8(const int8_t* bytes, float factor, float* out) {
  const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
  const __m256 f = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b));
  _mm256_storeu_ps(out, _mm256_mul_ps(f, _mm256_set1_ps(factor)));
}
WEFT_INLINE float HalfAt(const uint8_t* p) {
  uint16_t bits;
  memcpy(&bits, p, 2);
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}
/* The halves at `offset` in eight rows. */
WEFT_INLINE __m256 GatherHalves8(const uint8_t* const* rows, int64_t offset) {
  short h[8];
  for (int i = 0; i < 8; ++i) memcpy(&h[i], rows[i] + offset, 2);
  return _mm256_cvtph_ps(_mm_setr_epi16(h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]));
}

}  // namespace
}  // namespace weft::cpu::WEFT_ISA
