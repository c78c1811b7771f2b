// Numbers on the command lines of benches and of tests' helper programs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "absl/strings/numbers.h"

namespace weft {

// The number that `text` is. Ends the process with a message and exit code 2 if it is none that T
// holds.
template <typename T>
T NumberArgument(const char* text) {
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= std::numeric_limits<T>::min() &&
      value <= std::numeric_limits<T>::max()) {
    return static_cast<T>(value);
  }
  std::fprintf(stderr, "'%s' is not a number that is wanted here\n", text);
  std::exit(2);
}

}  // namespace weft
