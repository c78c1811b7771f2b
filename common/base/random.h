// A seeded generator that is passed by reference; nothing else in the tree makes randomness. The
// sequence is defined here (SplitMix64), so a seed means the same on every platform and standard
// library.
#pragma once

#include <cstdint>

#include "common/base/check.h"

namespace weft {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // The next 64 random bits. Source: Steele, Lea and Flood 2014, "Fast splittable pseudorandom
  // number generators".
  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // Uniform in [0, 1) with 53 random bits.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // Uniform in [low, high], low <= high. The bias of the modulo is below 2^-32 for the ranges we
  // use.
  int64_t Between(int64_t low, int64_t high) {
    WEFT_CHECK(low <= high);
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }

  // Normally distributed with mean 0 and standard deviation 1 (Box-Muller, one value a call).
  double Normal();

 private:
  uint64_t state_;
};

}  // namespace weft
