#include "rpc_backend/protocol/wire_reader.h"

#include <algorithm>

namespace weft {
namespace {

constexpr uint64_t kHighestFieldNumber = (uint64_t{1} << 29) - 1;
constexpr int kMaxVarintBytes = 10;

// `count` bytes, lowest first.
uint64_t Fixed(std::string_view bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return value;
}

}  // namespace

std::optional<WireField> WireReader::Fail() {
  ok_ = false;
  rest_ = {};
  return std::nullopt;
}

std::optional<uint64_t> WireReader::NextVarint() {
  if (rest_.empty()) return std::nullopt;
  uint64_t value = 0;
  const size_t most = std::min<size_t>(rest_.size(), kMaxVarintBytes);
  for (size_t i = 0; i < most; ++i) {
    const auto byte = static_cast<uint8_t>(rest_[i]);
    value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      rest_.remove_prefix(i + 1);
      return value;
    }
  }
  Fail();
  return std::nullopt;
}

std::optional<WireField> WireReader::Next() {
  const std::optional<uint64_t> tag = NextVarint();
  if (!tag) return std::nullopt;
  const uint64_t number = *tag >> 3;
  if (number == 0 || number > kHighestFieldNumber) return Fail();
  WireField field;
  field.number = static_cast<int32_t>(number);
  field.type = static_cast<WireType>(*tag & 7);
  switch (field.type) {
    case WireType::kVarint: {
      const std::optional<uint64_t> value = NextVarint();
      if (!value) return Fail();
      field.value = *value;
      return field;
    }
    case WireType::kFixed64:
    case WireType::kFixed32: {
      const size_t size = field.type == WireType::kFixed64 ? 8 : 4;
      if (rest_.size() < size) return Fail();
      field.value = Fixed(rest_, size);
      rest_.remove_prefix(size);
      return field;
    }
    case WireType::kBytes: {
      const std::optional<uint64_t> size = NextVarint();
      if (!size || *size > rest_.size()) return Fail();
      field.bytes = rest_.substr(0, *size);
      rest_.remove_prefix(*size);
      return field;
    }
  }
  return Fail();  // groups, which protobuf gave up, and numbers that mean nothing
}

int64_t PackedVarintCount(std::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(),
                       [](char byte) { return static_cast<uint8_t>(byte) < 0x80; });
}

}  // namespace weft
