#include "common/collectives/wire_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/tensor/quant/block_codec.h"

namespace weft {
namespace {

constexpr size_t kBlock = 32;

// As FloatToBFloat16, for the compiler to vectorise.
uint16_t ToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded);
}

float FromBFloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

void EncodeBFloat16(absl::Span<const float> values, uint8_t* bytes) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = ToBFloat16(values[i]);
    std::memcpy(bytes + 2 * i, &bits, sizeof bits);
  }
}

absl::Status EncodeQ8(absl::Span<const float> values, uint8_t* bytes) {
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, values.size() - begin);
    std::array<float, kBlock> padded = {};
    std::copy_n(values.data() + begin, count, padded.begin());
    const bool finite = std::all_of(padded.begin(), padded.end(),
                                    [](float value) { return std::fabs(value) <= 8e6f; });
    BlockQ8_0 block;
    if (!finite || !EncodeBlock(padded.data(), block)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a value near element ", begin, " does not fit ",
                       AbslView(DTypeName(DType::kQ8_0)), ", use a wider wire type"));
    }
    // With a scale of zero codes mean nothing but the sign of a zero, which would be lost next
    // time.
    if (block.d == 0) block = {};
    std::memcpy(bytes, &block, sizeof block);
    bytes += sizeof block;
  }
  return absl::OkStatus();
}

// use(first element, the block's values, how many of them).
template <typename Use>
void ForEachQ8Block(const uint8_t* bytes, size_t elements, const Use& use) {
  for (size_t begin = 0; begin < elements; begin += kBlock) {
    BlockQ8_0 block;
    std::memcpy(&block, bytes, sizeof block);
    bytes += sizeof block;
    std::array<float, kBlock> values;
    DecodeBlock(block, values.data());
    use(begin, values.data(), std::min(kBlock, elements - begin));
  }
}

}  // namespace

bool IsLossyWire(DType wire) { return wire == DType::kBF16 || wire == DType::kQ8_0; }

bool IsWireType(DType wire) {
  return wire == DType::kF32 || wire == DType::kI32 || IsLossyWire(wire);
}

int64_t WireBytes(DType wire, int64_t elements) {
  if (wire == DType::kBF16) return elements * 2;
  if (wire != DType::kQ8_0) return elements * 4;
  return (elements + int64_t{kBlock} - 1) / int64_t{kBlock} * int64_t{sizeof(BlockQ8_0)};
}

absl::Status EncodeWire(DType wire, absl::Span<const float> values, absl::Span<uint8_t> bytes) {
  if (wire == DType::kQ8_0) return EncodeQ8(values, bytes.data());
  if (wire == DType::kBF16) {
    EncodeBFloat16(values, bytes.data());
  } else if (!values.empty()) {
    std::memcpy(bytes.data(), values.data(), values.size() * sizeof(float));
  }
  return absl::OkStatus();
}

void DecodeWire(DType wire, absl::Span<const uint8_t> bytes, absl::Span<float> values) {
  if (wire == DType::kQ8_0) {
    ForEachQ8Block(bytes.data(), values.size(),
                   [&](size_t first, const float* block, size_t count) {
                     std::copy_n(block, count, values.data() + first);
                   });
  } else if (wire == DType::kBF16) {
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + 2 * i, sizeof bits);
      values[i] = FromBFloat16(bits);
    }
  } else if (!values.empty()) {
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  }
}

void AddWire(DType wire, absl::Span<const uint8_t> bytes, absl::Span<float> values) {
  if (wire == DType::kQ8_0) {
    ForEachQ8Block(bytes.data(), values.size(),
                   [&](size_t first, const float* block, size_t count) {
                     for (size_t i = 0; i < count; ++i) values[first + i] += block[i];
                   });
  } else if (wire == DType::kBF16) {
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + 2 * i, sizeof bits);
      values[i] += FromBFloat16(bits);
    }
  } else {
    for (size_t i = 0; i < values.size(); ++i) {
      float value = 0;
      std::memcpy(&value, bytes.data() + sizeof(float) * i, sizeof value);
      values[i] += value;
    }
  }
}

}  // namespace weft
