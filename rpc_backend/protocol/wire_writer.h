// Writes protobuf's wire format field by field, behind what a vector holds already. As generated
// code does: fields of value 0 are the caller's to leave out.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace weft {

class WireWriter {
 public:
  explicit WireWriter(std::vector<uint8_t>& bytes) : bytes_(bytes) {}

  void Varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<uint8_t>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<uint8_t>(value));
  }
  // int32, int64 and uint32 fields.
  void Int(int number, int64_t value) {
    Tag(number, 0);
    Varint(static_cast<uint64_t>(value));
  }
  void Double(int number, double value) {
    Tag(number, 1);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<uint8_t>(bits >> (8 * i)));
  }
  void Bytes(int number, absl::Span<const uint8_t> value) {
    BytesHeader(number, value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  void Text(int number, std::string_view value) {
    BytesHeader(number, value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  // Before a field of so many bytes that the caller writes next: sub-messages.
  void BytesHeader(int number, size_t size) {
    Tag(number, 2);
    Varint(size);
  }

  // Bytes that Int writes.
  static constexpr size_t IntBytes(int number, int64_t value) {
    return VarintBytes(static_cast<uint64_t>(number) << 3) +
           VarintBytes(static_cast<uint64_t>(value));
  }
  static constexpr size_t VarintBytes(uint64_t value) {
    return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
  }

 private:
  void Tag(int number, uint32_t type) { Varint(static_cast<uint64_t>(number) << 3 | type); }

  std::vector<uint8_t>& bytes_;
};

}  // namespace weft
