// The seed of a random test: printed, and taken back from the environment variable WEFT_TEST_SEED;
// and how many seeds it tries, from WEFT_TEST_COUNT.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace weft {

// The value of WEFT_TEST_SEED, or else `fallback`.
inline uint64_t TestSeed(uint64_t fallback) {
  const char* text = std::getenv("WEFT_TEST_SEED");
  const uint64_t seed = text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
  std::printf("seed: WEFT_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// The value of WEFT_TEST_COUNT, or else `fallback`.
inline uint64_t TestCount(uint64_t fallback) {
  const char* text = std::getenv("WEFT_TEST_COUNT");
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

}  // namespace weft
