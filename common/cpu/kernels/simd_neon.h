/* Sixteen floats as four NEON registers; see simd_avx2.h for what each function does. */
#pragma once

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "common/cpu/kernels/inlining.h"

namespace weft::cpu::WEFT_ISA {
namespace {

struct Vec {
  float32x4_t a, b, c, d;
};
struct Mask {
  uint32x4_t a, b, c, d;
};

WEFT_INLINE Vec Load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
WEFT_INLINE void Store(float* p, Vec v) {
  vst1q_f32(p, v.a);
  vst1q_f32(p + 4, v.b);
  vst1q_f32(p + 8, v.c);
  vst1q_f32(p + 12, v.d);
}
WEFT_INLINE Vec Broadcast(float x) {
  const float32x4_t v = vdupq_n_f32(x);
  return {v, v, v, v};
}

#define WEFT_BINARY(NAME, INTRINSIC)                                                             \
  WEFT_INLINE Vec NAME(Vec x, Vec y) {                                                           \
    return {INTRINSIC(x.a, y.a), INTRINSIC(x.b, y.b), INTRINSIC(x.c, y.c), INTRINSIC(x.d, y.d)}; \
  }
WEFT_BINARY(Add, vaddq_f32)
WEFT_BINARY(Sub, vsubq_f32)
WEFT_BINARY(Mul, vmulq_f32)
WEFT_BINARY(Div, vdivq_f32)
#undef WEFT_BINARY

WEFT_INLINE uint32x4_t Bits(float32x4_t x) { return vreinterpretq_u32_f32(x); }
WEFT_INLINE float32x4_t Floats(uint32x4_t x) { return vreinterpretq_f32_u32(x); }

/* f of each quarter. */
template <class Function>
WEFT_INLINE Vec Quarters(Vec x, Function f) {
  return {f(x.a), f(x.b), f(x.c), f(x.d)};
}
template <class Function>
WEFT_INLINE Vec Quarters(Vec x, Vec y, Function f) {
  return {f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d)};
}

WEFT_INLINE Vec Sqrt(Vec x) {
  return Quarters(x, [](float32x4_t v) { return vsqrtq_f32(v); });
}
WEFT_INLINE Vec Fma(Vec x, Vec y, Vec z) {
  return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
          vfmaq_f32(z.d, x.d, y.d)};
}
/* By comparison, as on other instruction sets: a NaN in y passes; one in x does not. */
WEFT_INLINE Vec Max(Vec x, Vec y) {
  return Quarters(x, y,
                  [](float32x4_t u, float32x4_t v) { return vbslq_f32(vcgtq_f32(u, v), u, v); });
}
WEFT_INLINE Vec Min(Vec x, Vec y) {
  return Quarters(x, y,
                  [](float32x4_t u, float32x4_t v) { return vbslq_f32(vcltq_f32(u, v), u, v); });
}
WEFT_INLINE Vec AndBits(Vec x, uint32_t bits) {
  const uint32x4_t m = vdupq_n_u32(bits);
  return Quarters(x, [m](float32x4_t v) { return Floats(vandq_u32(Bits(v), m)); });
}
WEFT_INLINE Vec XorBits(Vec x, uint32_t bits) {
  const uint32x4_t m = vdupq_n_u32(bits);
  return Quarters(x, [m](float32x4_t v) { return Floats(veorq_u32(Bits(v), m)); });
}
WEFT_INLINE Vec OrBits(Vec x, Vec y) {
  return Quarters(x, y,
                  [](float32x4_t u, float32x4_t v) { return Floats(vorrq_u32(Bits(u), Bits(v))); });
}
WEFT_INLINE Vec ShiftToExponent(Vec x) {
  return Quarters(x, [](float32x4_t v) { return Floats(vshlq_n_u32(Bits(v), 23)); });
}
WEFT_INLINE Vec Truncate(Vec x) {
  return Quarters(x, [](float32x4_t v) { return vrndq_f32(v); });
}

WEFT_INLINE Mask Less(Vec x, Vec y) {
  return {vcltq_f32(x.a, y.a), vcltq_f32(x.b, y.b), vcltq_f32(x.c, y.c), vcltq_f32(x.d, y.d)};
}
WEFT_INLINE Mask Equal(Vec x, Vec y) {
  return {vceqq_f32(x.a, y.a), vceqq_f32(x.b, y.b), vceqq_f32(x.c, y.c), vceqq_f32(x.d, y.d)};
}
WEFT_INLINE Vec Select(Mask m, Vec yes, Vec no) {
  return {vbslq_f32(m.a, yes.a, no.a), vbslq_f32(m.b, yes.b, no.b), vbslq_f32(m.c, yes.c, no.c),
          vbslq_f32(m.d, yes.d, no.d)};
}
WEFT_INLINE bool All(Mask m) {
  return vminvq_u32(vandq_u32(vandq_u32(m.a, m.b), vandq_u32(m.c, m.d))) != 0;
}

WEFT_INLINE float ReduceAdd(Vec v) {
  const float32x4_t s4 = vaddq_f32(vaddq_f32(v.a, v.c), vaddq_f32(v.b, v.d));
  const float32x2_t s2 = vadd_f32(vget_low_f32(s4), vget_high_f32(s4));
  return vget_lane_f32(s2, 0) + vget_lane_f32(s2, 1);
}
WEFT_INLINE float ReduceMax(Vec v) {
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(v.a, v.c), vmaxq_f32(v.b, v.d)));
}

WEFT_INLINE float32x4_t WidenHalves(uint16x4_t x) { return vcvt_f32_f16(vreinterpret_f16_u16(x)); }
WEFT_INLINE uint16x8_t LoadEight(const void* p) {
  return vreinterpretq_u16_u8(vld1q_u8(static_cast<const uint8_t*>(p)));
}
WEFT_INLINE Vec LoadHalf(const void* p) {
  const uint16x8_t x = LoadEight(p), y = LoadEight(static_cast<const uint8_t*>(p) + 16);
  return {WidenHalves(vget_low_u16(x)), WidenHalves(vget_high_u16(x)), WidenHalves(vget_low_u16(y)),
          WidenHalves(vget_high_u16(y))};
}
WEFT_INLINE float HalfAt(const void* p) {
  uint16_t bits;
  memcpy(&bits, p, 2);
  return vgetq_lane_f32(WidenHalves(vdup_n_u16(bits)), 0);
}
WEFT_INLINE uint16x4_t NarrowToHalves(float32x4_t x) {
  return vreinterpret_u16_f16(vcvt_f16_f32(x));
}
WEFT_INLINE void StoreEight(void* p, uint16x4_t low, uint16x4_t high) {
  vst1q_u8(static_cast<uint8_t*>(p), vreinterpretq_u8_u16(vcombine_u16(low, high)));
}
WEFT_INLINE void StoreHalf(void* p, Vec v) {
  StoreEight(p, NarrowToHalves(v.a), NarrowToHalves(v.b));
  StoreEight(static_cast<uint8_t*>(p) + 16, NarrowToHalves(v.c), NarrowToHalves(v.d));
}
WEFT_INLINE Vec LoadBFloat(const void* p) {
  const uint16x8_t x = LoadEight(p), y = LoadEight(static_cast<const uint8_t*>(p) + 16);
  return {Floats(vshll_n_u16(vget_low_u16(x), 16)), Floats(vshll_n_u16(vget_high_u16(x), 16)),
          Floats(vshll_n_u16(vget_low_u16(y), 16)), Floats(vshll_n_u16(vget_high_u16(y), 16))};
}
WEFT_INLINE uint16x4_t NarrowToBFloats(float32x4_t x) {
  const uint32x4_t bits = Bits(x);
  const uint32x4_t high = vshrq_n_u32(bits, 16);
  const uint32x4_t odd = vandq_u32(high, vdupq_n_u32(1));
  const uint32x4_t rounded = vshrq_n_u32(vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF))), 16);
  const uint32x4_t quiet = vorrq_u32(high, vdupq_n_u32(0x40));
  return vmovn_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet));
}
WEFT_INLINE void StoreBFloat(void* p, Vec v) {
  StoreEight(p, NarrowToBFloats(v.a), NarrowToBFloats(v.b));
  StoreEight(static_cast<uint8_t*>(p) + 16, NarrowToBFloats(v.c), NarrowToBFloats(v.d));
}
WEFT_INLINE Vec LoadInt8(const int8_t* p) {
  const int8x16_t bytes = vld1q_s8(p);
  const int16x8_t x = vmovl_s8(vget_low_s8(bytes)), y = vmovl_s8(vget_high_s8(bytes));
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(x))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(x))),
          vcvtq_f32_s32(vmovl_s16(vget_low_s16(y))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(y)))};
}
WEFT_INLINE void StoreInt8(int8_t* p, Vec v) {
  const int16x8_t x = vcombine_s16(vmovn_s32(vcvtq_s32_f32(v.a)), vmovn_s32(vcvtq_s32_f32(v.b)));
  const int16x8_t y = vcombine_s16(vmovn_s32(vcvtq_s32_f32(v.c)), vmovn_s32(vcvtq_s32_f32(v.d)));
  vst1q_s8(p, vcombine_s8(vmovn_s16(x), vmovn_s16(y)));
}

struct VecDouble {
  float64x2_t v[4];
};
WEFT_INLINE VecDouble ZeroDouble() {
  const float64x2_t zero = vdupq_n_f64(0);
  return {{zero, zero, zero, zero}};
}
WEFT_INLINE float64x2_t AddSquare(float64x2_t sum, float32x2_t x) {
  const float64x2_t wide = vcvt_f64_f32(x);
  return vaddq_f64(sum, vmulq_f64(wide, wide));
}
WEFT_INLINE VecDouble AddSquares(VecDouble sum, Vec x) {
  sum.v[0] = AddSquare(AddSquare(sum.v[0], vget_low_f32(x.a)), vget_low_f32(x.c));
  sum.v[1] = AddSquare(AddSquare(sum.v[1], vget_high_f32(x.a)), vget_high_f32(x.c));
  sum.v[2] = AddSquare(AddSquare(sum.v[2], vget_low_f32(x.b)), vget_low_f32(x.d));
  sum.v[3] = AddSquare(AddSquare(sum.v[3], vget_high_f32(x.b)), vget_high_f32(x.d));
  return sum;
}
WEFT_INLINE double ReduceAdd(VecDouble v) {
  const float64x2_t s = vaddq_f64(vaddq_f64(v.v[0], v.v[2]), vaddq_f64(v.v[1], v.v[3]));
  return vgetq_lane_f64(s, 0) + vgetq_lane_f64(s, 1);
}

WEFT_INLINE void Deinterleave(Vec x, Vec y, Vec* even, Vec* odd) {
  *even = {vuzp1q_f32(x.a, x.b), vuzp1q_f32(x.c, x.d), vuzp1q_f32(y.a, y.b), vuzp1q_f32(y.c, y.d)};
  *odd = {vuzp2q_f32(x.a, x.b), vuzp2q_f32(x.c, x.d), vuzp2q_f32(y.a, y.b), vuzp2q_f32(y.c, y.d)};
}
WEFT_INLINE void Interleave(Vec even, Vec odd, Vec* x, Vec* y) {
  *x = {vzip1q_f32(even.a, odd.a), vzip2q_f32(even.a, odd.a), vzip1q_f32(even.b, odd.b),
        vzip2q_f32(even.b, odd.b)};
  *y = {vzip1q_f32(even.c, odd.c), vzip2q_f32(even.c, odd.c), vzip1q_f32(even.d, odd.d),
        vzip2q_f32(even.d, odd.d)};
}

}  // namespace
}  // namespace weft::cpu::WEFT_ISA
