/* Sixteen floats in plain C++, lane by lane: the fallback, and what the other instruction sets must
 * equal. See simd_avx2.h for what each function does. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "common/cpu/kernels/inlining.h"

namespace weft::cpu::WEFT_ISA {
namespace {

struct Vec {
  float v[16];
};
struct Mask {
  bool v[16];
};

WEFT_INLINE uint32_t ToBits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}
WEFT_INLINE float FromBits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

/* x * y + z, rounded once. In double the product is exact; rounding the sum twice goes wrong only
 * when it lands on the middle between two floats or near their denormals, and then the library
 * decides. */
inline float FusedMultiplyAdd(float x, float y, float z) {
#if defined(__aarch64__) || defined(__FMA__)
  return __builtin_fmaf(x, y, z);
#else
  const double sum = static_cast<double>(x) * static_cast<double>(y) + static_cast<double>(z);
  uint64_t bits;
  memcpy(&bits, &sum, 8);
  const bool middle = (bits & 0x1FFFFFFFu) == 0x10000000u;
  const bool tiny = (bits & 0x7FFFFFFFFFFFFFFFu) < (uint64_t{1023 - 120} << 52);
  if (middle || tiny) return __builtin_fmaf(x, y, z);
  return static_cast<float>(sum);
#endif
}

#define WEFT_LANES(expression)                        \
  Vec r;                                              \
  for (int i = 0; i < 16; ++i) r.v[i] = (expression); \
  return r

inline Vec Load(const float* p) {
  Vec r;
  memcpy(r.v, p, 64);
  return r;
}
inline void Store(float* p, const Vec& v) { memcpy(p, v.v, 64); }
inline Vec Broadcast(float x) { WEFT_LANES(x); }
inline Vec Add(const Vec& x, const Vec& y) { WEFT_LANES(x.v[i] + y.v[i]); }
inline Vec Sub(const Vec& x, const Vec& y) { WEFT_LANES(x.v[i] - y.v[i]); }
inline Vec Mul(const Vec& x, const Vec& y) { WEFT_LANES(x.v[i] * y.v[i]); }
inline Vec Div(const Vec& x, const Vec& y) { WEFT_LANES(x.v[i] / y.v[i]); }
inline Vec Sqrt(const Vec& x) { WEFT_LANES(__builtin_sqrtf(x.v[i])); }
inline Vec Fma(const Vec& x, const Vec& y, const Vec& z) {
  WEFT_LANES(FusedMultiplyAdd(x.v[i], y.v[i], z.v[i]));
}
inline Vec Max(const Vec& x, const Vec& y) { WEFT_LANES(x.v[i] > y.v[i] ? x.v[i] : y.v[i]); }
inline Vec Min(const Vec& x, const Vec& y) { WEFT_LANES(x.v[i] < y.v[i] ? x.v[i] : y.v[i]); }
inline Vec AndBits(const Vec& x, uint32_t bits) { WEFT_LANES(FromBits(ToBits(x.v[i]) & bits)); }
inline Vec XorBits(const Vec& x, uint32_t bits) { WEFT_LANES(FromBits(ToBits(x.v[i]) ^ bits)); }
inline Vec OrBits(const Vec& x, const Vec& y) {
  WEFT_LANES(FromBits(ToBits(x.v[i]) | ToBits(y.v[i])));
}
inline Vec ShiftToExponent(const Vec& x) { WEFT_LANES(FromBits(ToBits(x.v[i]) << 23)); }
inline Vec Truncate(const Vec& x) { WEFT_LANES(__builtin_truncf(x.v[i])); }

inline Mask Less(const Vec& x, const Vec& y) {
  Mask m;
  for (int i = 0; i < 16; ++i) m.v[i] = x.v[i] < y.v[i];
  return m;
}
inline Mask Equal(const Vec& x, const Vec& y) {
  Mask m;
  for (int i = 0; i < 16; ++i) m.v[i] = x.v[i] == y.v[i];
  return m;
}
inline Vec Select(const Mask& m, const Vec& yes, const Vec& no) {
  WEFT_LANES(m.v[i] ? yes.v[i] : no.v[i]);
}
inline bool All(const Mask& m) {
  bool all = true;
  for (int i = 0; i < 16; ++i) all = all && m.v[i];
  return all;
}

inline float ReduceAdd(Vec v) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) v.v[i] += v.v[i + half];
  }
  return v.v[0];
}
inline float ReduceMax(Vec v) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) v.v[i] = v.v[i] > v.v[i + half] ? v.v[i] : v.v[i + half];
  }
  return v.v[0];
}

inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 31u;
  const uint32_t mantissa = half & 0x3FFu;
  if (exponent == 31) {
    return FromBits(sign | 0x7F800000u | (mantissa << 13) | (mantissa != 0 ? 0x00400000u : 0u));
  }
  if (exponent == 0) return FromBits(sign | ToBits(static_cast<float>(mantissa) * 0x1p-24f));
  return FromBits(sign | ((exponent + 112) << 23) | (mantissa << 13));
}
inline uint16_t FloatToHalf(float x) {
  const uint32_t sign = (ToBits(x) >> 16) & 0x8000u;
  const uint32_t magnitude = ToBits(x) & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) {
    return static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  }
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7C00u);
  if (magnitude < 0x38800000u) {
    /* Adding 1/2 leaves the multiple of 2^-24 in the low bits, rounded to nearest even. */
    return static_cast<uint16_t>(sign | (ToBits(FromBits(magnitude) + 0.5f) - ToBits(0.5f)));
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}
inline uint16_t FloatToBFloat(float x) {
  const uint32_t bits = ToBits(x);
  if (x != x) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

inline Vec LoadHalf(const void* p) {
  uint16_t h[16];
  memcpy(h, p, 32);
  WEFT_LANES(HalfToFloat(h[i]));
}
inline float HalfAt(const void* p) {
  uint16_t bits;
  memcpy(&bits, p, 2);
  return HalfToFloat(bits);
}
inline void StoreHalf(void* p, const Vec& v) {
  uint16_t h[16];
  for (int i = 0; i < 16; ++i) h[i] = FloatToHalf(v.v[i]);
  memcpy(p, h, 32);
}
inline Vec LoadBFloat(const void* p) {
  uint16_t h[16];
  memcpy(h, p, 32);
  WEFT_LANES(FromBits(static_cast<uint32_t>(h[i]) << 16));
}
inline void StoreBFloat(void* p, const Vec& v) {
  uint16_t h[16];
  for (int i = 0; i < 16; ++i) h[i] = FloatToBFloat(v.v[i]);
  memcpy(p, h, 32);
}
inline Vec LoadInt8(const int8_t* p) { WEFT_LANES(static_cast<float>(p[i])); }
inline void StoreInt8(int8_t* p, const Vec& v) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(v.v[i]);
}

struct VecDouble {
  double v[8];
};
inline VecDouble ZeroDouble() { return {}; }
inline VecDouble AddSquares(VecDouble sum, const Vec& x) {
  for (int i = 0; i < 16; ++i) {
    sum.v[i % 8] += static_cast<double>(x.v[i]) * static_cast<double>(x.v[i]);
  }
  return sum;
}
inline double ReduceAdd(const VecDouble& v) {
  const double* s = v.v;
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

inline void Deinterleave(const Vec& x, const Vec& y, Vec* even, Vec* odd) {
  Vec e, o;
  for (int i = 0; i < 8; ++i) {
    e.v[i] = x.v[2 * i];
    o.v[i] = x.v[2 * i + 1];
    e.v[i + 8] = y.v[2 * i];
    o.v[i + 8] = y.v[2 * i + 1];
  }
  *even = e;
  *odd = o;
}
inline void Interleave(const Vec& even, const Vec& odd, Vec* x, Vec* y) {
  for (int i = 0; i < 8; ++i) {
    x->v[2 * i] = even.v[i];
    x->v[2 * i + 1] = odd.v[i];
    y->v[2 * i] = even.v[i + 8];
    y->v[2 * i + 1] = odd.v[i + 8];
  }
}

#undef WEFT_LANES

}  // namespace
}  // namespace weft::cpu::WEFT_ISA
