// Stands in for the compiler's intrinsics where the AVX-512 kernels are built for the test on any
// processor with AVX2: SIMDe computes the 512-bit instructions with 256-bit ones. What Debian's
// SIMDe lacks, or takes only with immediate operands, is here.
#pragma once

#include <string.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#define SIMDE_NO_INLINE
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

namespace weft_simde {
namespace {

template <class Whole, class Half>
struct Halves {
  Half low, high;
  explicit Halves(Whole x) {
    memcpy(&low, &x, sizeof(low));
    memcpy(&high, reinterpret_cast<const char*>(&x) + sizeof(low), sizeof(high));
  }
};
template <class Whole, class Half>
Whole Join(Half low, Half high) {
  Whole x;
  memcpy(&x, &low, sizeof(low));
  memcpy(reinterpret_cast<char*>(&x) + sizeof(low), &high, sizeof(high));
  return x;
}
using Ints = Halves<simde__m512i, __m256i>;
using Floats = Halves<simde__m512, __m256>;
using Shorts = Halves<__m256i, __m128i>;

// Narrows eight 32-bit words each.
inline __m256i NarrowWords(simde__m512i x) {
  const Ints h(x);
  const __m256i mask = _mm256_set1_epi32(0xFFFF);
  const __m256i packed =
      _mm256_packus_epi32(_mm256_and_si256(h.low, mask), _mm256_and_si256(h.high, mask));
  return _mm256_permute4x64_epi64(packed, 0xD8);
}
inline __m128i NarrowBytes(simde__m512i x) {
  const __m256i words = _mm256_and_si256(NarrowWords(x), _mm256_set1_epi16(0xFF));
  const Shorts h(words);
  return _mm_packus_epi16(h.low, h.high);
}
inline simde__m512 IntsToFloats(simde__m512i x) {
  const Ints h(x);
  return Join<simde__m512>(_mm256_cvtepi32_ps(h.low), _mm256_cvtepi32_ps(h.high));
}
inline simde__m512i BytesToInts(__m128i x) {
  return Join<simde__m512i>(_mm256_cvtepi8_epi32(x), _mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)));
}
inline simde__m512i ShortsToInts(__m256i x) {
  const Shorts h(x);
  return Join<simde__m512i>(_mm256_cvtepu16_epi32(h.low), _mm256_cvtepu16_epi32(h.high));
}
inline simde__m512 HalvesToFloats(__m256i x) {
  const Shorts h(x);
  return Join<simde__m512>(_mm256_cvtph_ps(h.low), _mm256_cvtph_ps(h.high));
}
inline simde__m512i FloatsToInts(simde__m512 x) {
  const Floats h(x);
  return Join<simde__m512i>(_mm256_cvtps_epi32(h.low), _mm256_cvtps_epi32(h.high));
}
inline simde__m512d FloatsToDoubles(__m256 x) {
  const Halves<__m256, __m128> h(x);
  return Join<simde__m512d>(_mm256_cvtps_pd(h.low), _mm256_cvtps_pd(h.high));
}
inline __m256i FloatsToHalves(simde__m512 x) {
  const Floats h(x);
  return Join<__m256i>(_mm256_cvtps_ph(h.low, _MM_FROUND_TO_NEAREST_INT),
                       _mm256_cvtps_ph(h.high, _MM_FROUND_TO_NEAREST_INT));
}
inline simde__m512 Truncate(simde__m512 x) {
  const Floats h(x);
  return Join<simde__m512>(_mm256_round_ps(h.low, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC),
                           _mm256_round_ps(h.high, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
}
inline simde__m512i ShiftRightArithmetic(simde__m512i x, int count) {
  const Ints h(x);
  const __m128i n = _mm_cvtsi32_si128(count);
  return Join<simde__m512i>(_mm256_sra_epi32(h.low, n), _mm256_sra_epi32(h.high, n));
}
inline simde__m512i ShiftRight16(simde__m512i x, unsigned count) {
  const Ints h(x);
  const __m128i n = _mm_cvtsi32_si128(static_cast<int>(count));
  return Join<simde__m512i>(_mm256_srl_epi16(h.low, n), _mm256_srl_epi16(h.high, n));
}
inline simde__m512i ShiftLeft16(simde__m512i x, unsigned count) {
  const Ints h(x);
  const __m128i n = _mm_cvtsi32_si128(static_cast<int>(count));
  return Join<simde__m512i>(_mm256_sll_epi16(h.low, n), _mm256_sll_epi16(h.high, n));
}

}  // namespace
}  // namespace weft_simde

// Intrinsics are named so: these macros give SIMDe's names other bodies.
// NOLINTBEGIN(bugprone-reserved-identifier)
#undef _mm512_srli_epi16
#undef _mm512_slli_epi16
#undef _mm512_extractf32x8_ps
#undef _mm512_cvtps_ph
#undef _mm512_srai_epi32
#undef _mm512_roundscale_ps
#define _mm512_cvtepi32_epi16 weft_simde::NarrowWords
#define _mm512_cvtepi32_epi8 weft_simde::NarrowBytes
#define _mm512_cvtepi32_ps weft_simde::IntsToFloats
#define _mm512_cvtepi8_epi32 weft_simde::BytesToInts
#define _mm512_cvtepu16_epi32 weft_simde::ShortsToInts
#define _mm512_cvtph_ps weft_simde::HalvesToFloats
#define _mm512_cvtps_epi32 weft_simde::FloatsToInts
#define _mm512_cvtps_pd weft_simde::FloatsToDoubles
#define _mm512_cvtps_ph(x, rounding) weft_simde::FloatsToHalves(x)
#define _mm512_extractf32x8_ps(x, half) weft_simde::Floats(x).high
#define _mm512_srai_epi32 weft_simde::ShiftRightArithmetic
#define _mm512_srli_epi16 weft_simde::ShiftRight16
#define _mm512_slli_epi16 weft_simde::ShiftLeft16
// SIMDe ignores a rounding mode that comes with _MM_FROUND_NO_EXC. The kernels only truncate.
#define _mm512_roundscale_ps(x, rounding) weft_simde::Truncate(x)
// NOLINTEND(bugprone-reserved-identifier)
