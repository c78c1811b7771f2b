// GGUF files made byte by byte, independent of the writer, so that they may also be wrong in any
// way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace weft {

// Appends fields as they stand in a file; every call returns the object, so that a file reads as
// one expression.
class GgufBytes {
 public:
  GgufBytes& Raw(std::string_view bytes);
  template <typename T>
  GgufBytes& Number(T value) {
    return Raw({reinterpret_cast<const char*>(&value), sizeof(value)});
  }
  GgufBytes& U8(uint8_t value) { return Number(value); }
  GgufBytes& U32(uint32_t value) { return Number(value); }
  GgufBytes& U64(uint64_t value) { return Number(value); }
  GgufBytes& Text(std::string_view text);  // length, bytes

  // "GGUF", version, counts.
  GgufBytes& Header(int64_t tensor_count, int64_t key_count, uint32_t version = 3);
  GgufBytes& U32Key(std::string_view key, uint32_t value);
  GgufBytes& TextKey(std::string_view key, std::string_view value);
  // Key, type 9, element type, count.
  GgufBytes& ArrayKey(std::string_view key, uint32_t element_type, uint64_t count);
  // Name, dimension count, extents, type, offset.
  GgufBytes& Tensor(std::string_view name, const std::vector<int64_t>& extents, uint32_t type,
                    uint64_t offset);
  GgufBytes& AlignTo(size_t alignment);
  GgufBytes& Zeros(size_t count);

  const std::string& bytes() const { return bytes_; }
  absl::Span<const uint8_t> span() const {
    return {reinterpret_cast<const uint8_t*>(bytes_.data()), bytes_.size()};
  }

 private:
  std::string bytes_;
};

inline absl::Span<const uint8_t> AsSpan(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

// Small valid files that use every part of the format between them, with a name for each.
std::vector<std::pair<std::string, std::string>> GgufSamples();

}  // namespace weft
