// Compares what an attacker must not learn byte by byte.
#pragma once

#include <cstddef>
#include <string_view>

namespace weft {

// Takes as long whatever the bytes are; the time may tell the lengths.
inline bool EqualSecrets(std::string_view a, std::string_view b) {
  size_t difference = a.size() ^ b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    const char other = i < b.size() ? b[i] : '\0';
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

}  // namespace weft
