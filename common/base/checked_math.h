// Integer arithmetic that reports overflow instead of wrapping. Sizes, counts and offsets are
// int64_t throughout; anything computed from outside data goes through these.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace weft {

// a + b, or nothing on overflow.
inline std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// a * b, or nothing on overflow.
inline std::optional<int64_t> CheckedMultiply(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// a + b and a * b of values >= 0, or the largest int64_t where that overflows: for estimates.
inline int64_t SaturatingAdd(int64_t a, int64_t b) {
  return CheckedAdd(a, b).value_or(std::numeric_limits<int64_t>::max());
}
inline int64_t SaturatingMultiply(int64_t a, int64_t b) {
  return CheckedMultiply(a, b).value_or(std::numeric_limits<int64_t>::max());
}

// The smallest multiple of `alignment` (> 0) that is >= value (>= 0), or nothing on overflow.
inline std::optional<int64_t> CheckedAlignUp(int64_t value, int64_t alignment) {
  const int64_t remainder = value % alignment;
  if (remainder == 0) return value;
  return CheckedAdd(value, alignment - remainder);
}

// For values that are known to be small: value rounded up to a multiple of alignment (> 0).
constexpr int64_t AlignUp(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

constexpr int64_t CeilDivide(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

constexpr bool IsPowerOfTwo(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

}  // namespace weft
