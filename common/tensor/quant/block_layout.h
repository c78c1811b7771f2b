/* The block formats of GGUF files as packed structs, fields in byte order (spec H.4).
 * Half-precision fields are raw 16-bit patterns. C headers only: the kernels of every instruction
 * set include this (common/cpu/kernels). */
#pragma once

#include <stdint.h>

#pragma pack(push, 1)

/* x[j] = d * ((qs[j] & 15) - 8); x[j + 16] = d * ((qs[j] >> 4) - 8) */
struct BlockQ4_0 {
  uint16_t d;
  uint8_t qs[16];
};

/* x[j] = d * (qs[j] & 15) + m; x[j + 16] = d * (qs[j] >> 4) + m */
struct BlockQ4_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qs[16];
};

/* Five-bit codes: bit j of qh is the high bit of element j. x = d * (q - 16) */
struct BlockQ5_0 {
  uint16_t d;
  uint8_t qh[4];
  uint8_t qs[16];
};

/* x = d * q + m */
struct BlockQ5_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qh[4];
  uint8_t qs[16];
};

/* x = d * qs */
struct BlockQ8_0 {
  uint16_t d;
  int8_t qs[32];
};

/* Sixteen sub-blocks of 16: low nibble of scales[i] is the scale, high nibble the minimum. */
struct BlockQ2_K {
  uint8_t scales[16];
  uint8_t qs[64];
  uint16_t d;
  uint16_t dmin;
};

/* Sixteen sub-blocks of 16 with six-bit scales packed in twelve bytes. */
struct BlockQ3_K {
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  uint16_t d;
};

/* Eight sub-blocks of 32 with six-bit scales and minimums packed in twelve bytes. */
struct BlockQ4_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qs[128];
};

struct BlockQ5_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};

/* Sixteen sub-blocks of 16 with eight-bit scales. */
struct BlockQ6_K {
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint16_t d;
};

/* x = d * table[code] */
struct BlockIQ4_NL {
  uint16_t d;
  uint8_t qs[16];
};

/* Eight sub-blocks of 32 with six-bit scales split over scales_h and scales_l. */
struct BlockIQ4_XS {
  uint16_t d;
  uint16_t scales_h;
  uint8_t scales_l[4];
  uint8_t qs[128];
};

/* x = e2m1[code] * 2^(e - 127) */
struct BlockMXFP4 {
  uint8_t e;
  uint8_t qs[16];
};

#pragma pack(pop)

#ifdef __cplusplus
static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22, "");
static_assert(sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34 && sizeof(BlockQ2_K) == 84, "");
static_assert(sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176, "");
static_assert(sizeof(BlockQ6_K) == 210 && sizeof(BlockIQ4_NL) == 18 && sizeof(BlockIQ4_XS) == 136,
              "");
static_assert(sizeof(BlockMXFP4) == 17, "");
#endif
