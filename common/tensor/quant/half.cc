// Conversions of single values between F32 and the two 16-bit formats.
#include <bit>
#include <cstdint>

#include "common/tensor/quant/reference_codec.h"

namespace weft {
namespace {

constexpr uint32_t kFloatInfinity = 0x7F800000u;

// `bits` >> `shift` rounded to nearest, ties to even. shift is 1..31.
uint32_t ShiftRightToNearestEven(uint32_t bits, int shift) {
  const uint32_t kept = bits >> shift;
  const uint32_t rest = bits & ((1u << shift) - 1);
  const uint32_t half_way = 1u << (shift - 1);
  const bool up = rest > half_way || (rest == half_way && (kept & 1u) != 0);
  return kept + (up ? 1u : 0u);
}

}  // namespace

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  const uint32_t mantissa = half & 0x3FFu;
  if (exponent == 0x1F) {
    // Like the conversion instructions, a NaN becomes quiet and keeps its payload.
    const uint32_t quiet = mantissa != 0 ? 0x00400000u : 0u;
    return std::bit_cast<float>(sign | kFloatInfinity | (mantissa << 13) | quiet);
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
  const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24f;  // exact: zero or denormal
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > kFloatInfinity) {
    return static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  }
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7C00u);  // 2^16 and above
  if (magnitude >= 0x38800000u) {                                              // 2^-14: normal
    // A carry out of the mantissa moves on to the next exponent, and from the largest to infinity.
    return static_cast<uint16_t>(sign | (ShiftRightToNearestEven(magnitude, 13) - (112u << 10)));
  }
  const int exponent = static_cast<int>(magnitude >> 23);
  if (exponent < 102) return sign;  // below half of the smallest denormal, 2^-25
  const uint32_t mantissa = (magnitude & 0x007FFFFFu) | 0x00800000u;
  return static_cast<uint16_t>(sign | ShiftRightToNearestEven(mantissa, 126 - exponent));
}

float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > kFloatInfinity) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace weft
