#include "common/cpu/limits/peak_loops.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft {
namespace {

// Independent accumulators: enough to hide the latency of a multiply-add on two ports. They must
// stay in registers, so each loop over them is unrolled by hand.
constexpr int kChains = 8;

#define WEFT_FOR_EACH_CHAIN(STEP) STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)

#if defined(__x86_64__)
__attribute__((target("avx2"))) int64_t Int8Avx2(int64_t steps, int64_t* sink) {
  const __m256i x = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
  __m256i y = _mm256_set1_epi8(5);
  __m256i sum[kChains] = {};
  for (int64_t i = 0; i < steps; ++i) {
    // The operand is a new one each time, as far as the compiler knows.
#define WEFT_STEP(I)          \
  asm volatile("" : "+x"(y)); \
  sum[I] = _mm256_add_epi32(sum[I], _mm256_madd_epi16(_mm256_maddubs_epi16(x, y), ones));
    WEFT_FOR_EACH_CHAIN(WEFT_STEP)
#undef WEFT_STEP
  }
  for (int i = 1; i < kChains; ++i) sum[0] = _mm256_add_epi32(sum[0], sum[i]);
  *sink += _mm256_extract_epi32(sum[0], 0);
  return steps * kChains * 64;
}

__attribute__((target("avx512f,avx512vnni,avx2"))) int64_t Int8Avx512(int64_t steps,
                                                                      int64_t* sink) {
  const __m512i x = _mm512_set1_epi32(0x03030303);
  __m512i y = _mm512_set1_epi32(0x05050505);
  __m512i sum[kChains] = {};
  for (int64_t i = 0; i < steps; ++i) {
#define WEFT_STEP(I)          \
  asm volatile("" : "+v"(y)); \
  sum[I] = _mm512_dpbusd_epi32(sum[I], x, y);
    WEFT_FOR_EACH_CHAIN(WEFT_STEP)
#undef WEFT_STEP
  }
  for (int i = 1; i < kChains; ++i) sum[0] = _mm512_add_epi32(sum[0], sum[i]);
  int32_t lanes[16];  // by memory: g++-12 warns inside its own header about the shorter ways
  _mm512_storeu_si512(lanes, sum[0]);
  *sink += lanes[0];
  return steps * kChains * 128;
}

__attribute__((target("avx2,fma"))) int64_t F32Avx2(int64_t steps, int64_t* sink) {
  const __m256 x = _mm256_set1_ps(0.999f);
  __m256 y = _mm256_set1_ps(1e-3f);
  __m256 sum[kChains] = {};
  for (int64_t i = 0; i < steps; ++i) {
#define WEFT_STEP(I)          \
  asm volatile("" : "+x"(y)); \
  sum[I] = _mm256_fmadd_ps(sum[I], x, y);
    WEFT_FOR_EACH_CHAIN(WEFT_STEP)
#undef WEFT_STEP
  }
  for (int i = 1; i < kChains; ++i) sum[0] = _mm256_add_ps(sum[0], sum[i]);
  *sink += _mm256_cvtss_f32(sum[0]) > 0 ? 1 : 0;
  return steps * kChains * 16;
}

__attribute__((target("avx512f"))) int64_t F32Avx512(int64_t steps, int64_t* sink) {
  const __m512 x = _mm512_set1_ps(0.999f);
  __m512 y = _mm512_set1_ps(1e-3f);
  __m512 sum[kChains] = {};
  for (int64_t i = 0; i < steps; ++i) {
#define WEFT_STEP(I)          \
  asm volatile("" : "+v"(y)); \
  sum[I] = _mm512_fmadd_ps(sum[I], x, y);
    WEFT_FOR_EACH_CHAIN(WEFT_STEP)
#undef WEFT_STEP
  }
  for (int i = 1; i < kChains; ++i) sum[0] = _mm512_add_ps(sum[0], sum[i]);
  float lanes[16];
  _mm512_storeu_ps(lanes, sum[0]);
  *sink += lanes[0] > 0 ? 1 : 0;
  return steps * kChains * 32;
}

__attribute__((target("avx2"))) int64_t ReadAvx2(const uint8_t* data, int64_t bytes) {
  __m256i sum[2] = {};
  for (int64_t i = 0; i < bytes; i += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(data + i + 2048), _MM_HINT_T0);
    for (int j = 0; j < 2; ++j) {
      const auto* at = reinterpret_cast<const __m256i*>(data + i + 32 * j);
      sum[j] = _mm256_xor_si256(sum[j], _mm256_loadu_si256(at));
    }
  }
  return _mm256_extract_epi64(_mm256_xor_si256(sum[0], sum[1]), 0);
}
#endif

// Without vector code of our own: what the compiler makes of plain loops.
int64_t Int8Plain(int64_t steps, int64_t* sink) {
  int32_t sum[kChains] = {};
  int32_t y = 5;
  for (int64_t i = 0; i < steps; ++i) {
#define WEFT_STEP(I)          \
  asm volatile("" : "+r"(y)); \
  sum[I] += 3 * y;
    WEFT_FOR_EACH_CHAIN(WEFT_STEP)
#undef WEFT_STEP
  }
  for (const int32_t chain : sum) *sink += chain;
  return steps * kChains * 2;
}

int64_t F32Plain(int64_t steps, int64_t* sink) {
  float sum[kChains] = {};
  float y = 1e-3f;
  for (int64_t i = 0; i < steps; ++i) {
#define WEFT_STEP(I) sum[I] = sum[I] * 0.999f + y;
    asm volatile("" : "+m"(y));
    WEFT_FOR_EACH_CHAIN(WEFT_STEP)
#undef WEFT_STEP
  }
  for (const float chain : sum) *sink += chain > 0 ? 1 : 0;
  return steps * kChains * 2;
}

int64_t ReadPlain(const uint8_t* data, int64_t bytes) {
  uint64_t sum[8] = {};
  for (int64_t i = 0; i < bytes; i += 64) {
    for (int j = 0; j < 8; ++j) {
      uint64_t word = 0;
      std::memcpy(&word, data + i + 8 * j, sizeof(word));
      sum[j] ^= word;
    }
  }
  uint64_t all = 0;
  for (const uint64_t word : sum) all ^= word;
  return static_cast<int64_t>(all);
}

#undef WEFT_FOR_EACH_CHAIN

}  // namespace

int64_t Int8Loop(InstructionSet isa, int64_t steps, int64_t* sink) {
#if defined(__x86_64__)
  if (isa == InstructionSet::kAvx512) return Int8Avx512(steps, sink);
  if (isa == InstructionSet::kAvx2) return Int8Avx2(steps, sink);
#endif
  static_cast<void>(isa);
  return Int8Plain(steps, sink);
}

int64_t F32Loop(InstructionSet isa, int64_t steps, int64_t* sink) {
#if defined(__x86_64__)
  if (isa == InstructionSet::kAvx512) return F32Avx512(steps, sink);
  if (isa == InstructionSet::kAvx2) return F32Avx2(steps, sink);
#endif
  static_cast<void>(isa);
  return F32Plain(steps, sink);
}

int64_t ReadLoop(const uint8_t* data, int64_t bytes, int64_t* sink) {
#if defined(__x86_64__)
  if (IsSupported(InstructionSet::kAvx2)) {
    *sink += ReadAvx2(data, bytes);
    return bytes;
  }
#endif
  *sink += ReadPlain(data, bytes);
  return bytes;
}

}  // namespace weft
