// Names and seeds that nobody guesses, each given once.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

// Any thread.
class IdSource {
 public:
  explicit IdSource(uint64_t seed) : seed_(seed) {}

  uint64_t Next();
  // "PREFIX" and 32 hexadecimal digits.
  std::string NextName(std::string_view prefix);

 private:
  const uint64_t seed_;
  std::atomic<uint64_t> count_ = 0;
};

}  // namespace weft
