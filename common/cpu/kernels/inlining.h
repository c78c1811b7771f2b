/* How hard the compiler is pushed to inline and unroll. With WEFT_KERNELS_SMALL not at all: where
 * lanes are plain code, or the build is instrumented, it would take minutes and gain nothing. */
#pragma once

#if defined(WEFT_KERNELS_SMALL)
#define WEFT_INLINE inline
#define WEFT_UNROLL(N)
#else
#define WEFT_INLINE inline __attribute__((always_inline))
#define WEFT_UNROLL(N) WEFT_PRAGMA(GCC unroll N)
#define WEFT_PRAGMA(TEXT) _Pragma(#TEXT)
#endif
