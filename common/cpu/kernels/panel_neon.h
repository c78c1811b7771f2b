/* Integer dot products of a panel of eight weight rows on NEON; see panel_avx2.h. A strip holds
 * sixteen bytes of row s and of row s + 4 in two registers; codes are signed. Built for the
 * dot-product extension they use it, else products are widened. */
#pragma once

#include "common/cpu/kernels/simd_neon.h"

namespace weft::cpu::WEFT_ISA {
namespace {

constexpr int kPanelRows = 8;
constexpr int kTileColumns = 4;
constexpr int kFloatTileRows = 2;
constexpr int kFloatTileColumns = 2;

using RowPointers = const uint8_t* const (&)[kPanelRows];

struct PanelFloat {
  float32x4_t a, b;
};
struct PanelInt {
  int32x4_t a, b;
};
struct Strip {
  uint8x16_t a, b;
};

WEFT_INLINE PanelFloat LoadPanel(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
WEFT_INLINE void StorePanel(float* p, PanelFloat x) {
  vst1q_f32(p, x.a);
  vst1q_f32(p + 4, x.b);
}
WEFT_INLINE PanelFloat ZeroPanel() { return {vdupq_n_f32(0), vdupq_n_f32(0)}; }
WEFT_INLINE PanelFloat Mul(PanelFloat x, PanelFloat y) {
  return {vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b)};
}
WEFT_INLINE PanelFloat MulBroadcast(PanelFloat x, const float* y) {
  return {vmulq_n_f32(x.a, *y), vmulq_n_f32(x.b, *y)};
}
WEFT_INLINE PanelFloat Fma(PanelFloat x, PanelFloat y, PanelFloat z) {
  return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b)};
}
WEFT_INLINE PanelFloat FmaBroadcast(PanelFloat x, const float* y, PanelFloat z) {
  return {vfmaq_n_f32(z.a, x.a, *y), vfmaq_n_f32(z.b, x.b, *y)};
}
WEFT_INLINE PanelFloat NegatePanel(PanelFloat x) { return {vnegq_f32(x.a), vnegq_f32(x.b)}; }

WEFT_INLINE PanelFloat ToFloat(PanelInt x) { return {vcvtq_f32_s32(x.a), vcvtq_f32_s32(x.b)}; }
WEFT_INLINE PanelInt AddInt(PanelInt x, int32_t y) {
  return {vaddq_s32(x.a, vdupq_n_s32(y)), vaddq_s32(x.b, vdupq_n_s32(y))};
}
WEFT_INLINE PanelInt AddBroadcast(PanelInt x, const void* y) {
  int32_t word;
  memcpy(&word, y, 4);
  return AddInt(x, word);
}
WEFT_INLINE int32x4_t ShiftAnd(int32x4_t x, int shift, uint32_t mask) {
  const uint32x4_t shifted = vshlq_u32(vreinterpretq_u32_s32(x), vdupq_n_s32(-shift));
  return vreinterpretq_s32_u32(vandq_u32(shifted, vdupq_n_u32(mask)));
}
WEFT_INLINE PanelInt WordBits(PanelInt x, int shift, uint32_t mask) {
  return {ShiftAnd(x.a, shift, mask), ShiftAnd(x.b, shift, mask)};
}
WEFT_INLINE PanelInt OrShifted(PanelInt x, PanelInt y, int shift) {
  return {vorrq_s32(x.a, vshlq_s32(y.a, vdupq_n_s32(shift))),
          vorrq_s32(x.b, vshlq_s32(y.b, vdupq_n_s32(shift)))};
}
WEFT_INLINE PanelInt SignedByte(PanelInt x, int index) {
  const int32x4_t up = vdupq_n_s32(24 - 8 * index);
  return {vshrq_n_s32(vshlq_s32(x.a, up), 24), vshrq_n_s32(vshlq_s32(x.b, up), 24)};
}
WEFT_INLINE float32x4_t HalfOfFour(int32x4_t x) {
  return WidenHalves(vmovn_u32(vreinterpretq_u32_s32(x)));
}
WEFT_INLINE PanelFloat HalfOfWord(PanelInt x) { return {HalfOfFour(x.a), HalfOfFour(x.b)}; }
WEFT_INLINE int32x4_t FourWords(const uint8_t* const* rows, int64_t offset) {
  int32_t words[4];
  for (int i = 0; i < 4; ++i) memcpy(&words[i], rows[i] + offset, 4);
  return vld1q_s32(words);
}
WEFT_INLINE PanelInt GatherWords(RowPointers rows, int64_t offset) {
  return {FourWords(rows, offset), FourWords(rows + 4, offset)};
}
WEFT_INLINE void GatherHalves(RowPointers rows, int64_t offset, PanelFloat* low, PanelFloat* high) {
  const PanelInt words = GatherWords(rows, offset);
  *low = HalfOfWord(words);
  *high = HalfOfWord(WordBits(words, 16, 0xFFFFu));
}
WEFT_INLINE float32x4_t PowerOfFour(int32x4_t e) {
  const int32x4_t half = vshrq_n_s32(e, 1);
  const int32x4_t bias = vdupq_n_s32(63);
  const int32x4_t x = vshlq_n_s32(vaddq_s32(half, bias), 23);
  const int32x4_t y = vshlq_n_s32(vaddq_s32(vsubq_s32(e, half), bias), 23);
  const uint32x4_t nan = vceqq_s32(e, vdupq_n_s32(255));
  return vmulq_f32(Floats(vorrq_u32(vreinterpretq_u32_s32(x), nan)), vreinterpretq_f32_s32(y));
}
WEFT_INLINE PanelFloat PowerOfExponent(PanelInt e) { return {PowerOfFour(e.a), PowerOfFour(e.b)}; }

WEFT_INLINE Strip LoadStrip(RowPointers rows, int64_t offset, int s) {
  return {vld1q_u8(rows[s] + offset), vld1q_u8(rows[s + 4] + offset)};
}
WEFT_INLINE Strip ShiftRightAnd(Strip x, int shift, int mask) {
  const int8x16_t down = vdupq_n_s8(static_cast<int8_t>(-shift));
  const uint8x16_t m = vdupq_n_u8(static_cast<uint8_t>(mask));
  return {vandq_u8(vshlq_u8(x.a, down), m), vandq_u8(vshlq_u8(x.b, down), m)};
}
WEFT_INLINE Strip Or(Strip x, Strip y) { return {vorrq_u8(x.a, y.a), vorrq_u8(x.b, y.b)}; }
WEFT_INLINE uint8x16_t ExpandSixteen(const uint8_t* bits, int value) {
  const uint8x16_t select = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
  const uint8x16_t spread = vcombine_u8(vdup_n_u8(bits[0]), vdup_n_u8(bits[1]));
  return vandq_u8(vtstq_u8(spread, select), vdupq_n_u8(static_cast<uint8_t>(value)));
}
WEFT_INLINE Strip ExpandBits(RowPointers rows, int64_t at, int half, int s, int value) {
  const int64_t offset = at + 2 * half;
  return {ExpandSixteen(rows[s] + offset, value), ExpandSixteen(rows[s + 4] + offset, value)};
}
WEFT_INLINE Strip Lookup(Strip index, const int8_t (&table)[16]) {
  const uint8x16_t entries = vreinterpretq_u8_s8(vld1q_s8(table));
  return {vqtbl1q_u8(entries, index.a), vqtbl1q_u8(entries, index.b)};
}
WEFT_INLINE void StoreFirstRow(Strip x, uint8_t* out) { vst1q_u8(out, x.a); }

template <class F>
constexpr int kCodeOffset = 0;

template <class F>
WEFT_INLINE Strip FinishCodes(Strip codes) {
  if constexpr (!F::kSigned && F::kOffset != 0) {
    const uint8x16_t offset = vdupq_n_u8(F::kOffset);
    return {vsubq_u8(codes.a, offset), vsubq_u8(codes.b, offset)};
  }
  return codes;
}

WEFT_INLINE uint32x4_t Words(uint8x16_t x) { return vreinterpretq_u32_u8(x); }
WEFT_INLINE void TransposeFour(uint32x4_t r0, uint32x4_t r1, uint32x4_t r2, uint32x4_t r3,
                               int32x4_t* out0, int32x4_t* out1, int32x4_t* out2, int32x4_t* out3) {
  const uint64x2_t a = vreinterpretq_u64_u32(vzip1q_u32(r0, r1));
  const uint64x2_t b = vreinterpretq_u64_u32(vzip2q_u32(r0, r1));
  const uint64x2_t c = vreinterpretq_u64_u32(vzip1q_u32(r2, r3));
  const uint64x2_t d = vreinterpretq_u64_u32(vzip2q_u32(r2, r3));
  *out0 = vreinterpretq_s32_u64(vzip1q_u64(a, c));
  *out1 = vreinterpretq_s32_u64(vzip2q_u64(a, c));
  *out2 = vreinterpretq_s32_u64(vzip1q_u64(b, d));
  *out3 = vreinterpretq_s32_u64(vzip2q_u64(b, d));
}
WEFT_INLINE void Transpose(const Strip (&s)[4], PanelInt (&w)[4]) {
  TransposeFour(Words(s[0].a), Words(s[1].a), Words(s[2].a), Words(s[3].a), &w[0].a, &w[1].a,
                &w[2].a, &w[3].a);
  TransposeFour(Words(s[0].b), Words(s[1].b), Words(s[2].b), Words(s[3].b), &w[0].b, &w[1].b,
                &w[2].b, &w[3].b);
}
WEFT_INLINE void StoreWords(PanelInt x, uint8_t* out) {
  vst1q_u8(out, vreinterpretq_u8_s32(x.a));
  vst1q_u8(out + 16, vreinterpretq_u8_s32(x.b));
}

/* Adds the products of each run of four bytes, in words; without the extension, in pairs of words
 * that still have to be added: DotWords does it. */
struct Partial {
#if defined(__ARM_FEATURE_DOTPROD)
  int32x4_t sum;
#else
  int32x4_t low, high;
#endif
};
WEFT_INLINE Partial ZeroPartial() {
#if defined(__ARM_FEATURE_DOTPROD)
  return {vdupq_n_s32(0)};
#else
  return {vdupq_n_s32(0), vdupq_n_s32(0)};
#endif
}
WEFT_INLINE Partial AddProducts(Partial p, int8x16_t x, int8x16_t y) {
#if defined(__ARM_FEATURE_DOTPROD)
  return {vdotq_s32(p.sum, x, y)};
#else
  return {vpadalq_s16(p.low, vmull_s8(vget_low_s8(x), vget_low_s8(y))),
          vpadalq_s16(p.high, vmull_high_s8(x, y))};
#endif
}
WEFT_INLINE int32x4_t DotWords(Partial p) {
#if defined(__ARM_FEATURE_DOTPROD)
  return p.sum;
#else
  return vpaddq_s32(p.low, p.high);
#endif
}
WEFT_INLINE int8x16_t Signed(uint8x16_t x) { return vreinterpretq_s8_u8(x); }
/* The sum of the four words of each of four rows. */
WEFT_INLINE int32x4_t SumFour(Partial r0, Partial r1, Partial r2, Partial r3) {
  return vpaddq_s32(vpaddq_s32(DotWords(r0), DotWords(r1)), vpaddq_s32(DotWords(r2), DotWords(r3)));
}

template <class F>
WEFT_INLINE PanelInt DotSixteen(const Strip (&codes)[4], const int8_t* x) {
  const int8x16_t column = vld1q_s8(x);
  Partial a[4], b[4];
  WEFT_UNROLL(4)
  for (int s = 0; s < 4; ++s) {
    a[s] = AddProducts(ZeroPartial(), Signed(codes[s].a), column);
    b[s] = AddProducts(ZeroPartial(), Signed(codes[s].b), column);
  }
  return {SumFour(a[0], a[1], a[2], a[3]), SumFour(b[0], b[1], b[2], b[3])};
}

template <class F>
WEFT_INLINE PanelInt DotThirtyTwo(const Strip (&first)[4], const Strip (&second)[4],
                                  const int8_t* x) {
  const int8x16_t low = vld1q_s8(x), high = vld1q_s8(x + 16);
  Partial a[4], b[4];
  WEFT_UNROLL(4)
  for (int s = 0; s < 4; ++s) {
    a[s] =
        AddProducts(AddProducts(ZeroPartial(), Signed(first[s].a), low), Signed(second[s].a), high);
    b[s] =
        AddProducts(AddProducts(ZeroPartial(), Signed(first[s].b), low), Signed(second[s].b), high);
  }
  return {SumFour(a[0], a[1], a[2], a[3]), SumFour(b[0], b[1], b[2], b[3])};
}

template <class F, int kWords, int kColumns, class Use>
WEFT_INLINE void DotColumns(const uint8_t* codes, const uint8_t* const (&x)[kColumns],
                            int64_t offset, Use use) {
  WEFT_UNROLL(4)
  for (int j = 0; j < kColumns; ++j) {
    Partial a = ZeroPartial(), b = ZeroPartial();
    WEFT_UNROLL(8)
    for (int w = 0; w < kWords; ++w) {
      int32_t word;
      memcpy(&word, x[j] + offset + 4 * w, 4);
      const int8x16_t column = vreinterpretq_s8_s32(vdupq_n_s32(word));
      a = AddProducts(a, Signed(vld1q_u8(codes + 32 * w)), column);
      b = AddProducts(b, Signed(vld1q_u8(codes + 32 * w + 16)), column);
    }
    use(j, PanelInt{DotWords(a), DotWords(b)});
  }
}

}  // namespace
}  // namespace weft::cpu::WEFT_ISA
