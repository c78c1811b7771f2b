// The numbers of the GGUF file format and the limits that weft sets on it.
// Source: spec chapter H.1 and H.2.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace weft {

// Files are little-endian and fields are copied as they are.
static_assert(std::endian::native == std::endian::little);

inline constexpr std::string_view kGgufMagic = "GGUF";
inline constexpr uint32_t kGgufOldestVersion = 2;
inline constexpr uint32_t kGgufVersion = 3;  // what the writer writes; 2 reads the same

// Ids of value types.
enum class GgufValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
inline constexpr uint32_t kGgufValueTypeCount = 13;

inline constexpr std::string_view kGgufAlignmentKey = "general.alignment";
inline constexpr int64_t kGgufDefaultAlignment = 32;
inline constexpr int64_t kGgufMinAlignment = 8;
inline constexpr int64_t kGgufMaxAlignment = 65536;

inline constexpr int64_t kGgufHeaderBytes = 24;  // magic, version, two counts
// The shortest entries: a key of one byte with a value of one byte; a tensor with a name of one
// byte and no extents.
inline constexpr int64_t kGgufMinKeyBytes = 8 + 1 + 4 + 1;
inline constexpr int64_t kGgufMinTensorBytes = 8 + 1 + 4 + 4 + 8;

inline constexpr int64_t kGgufMaxKeyLength = 65535;
inline constexpr int64_t kGgufMaxTensorNameLength = 63;
inline constexpr int64_t kGgufMaxStringLength = int64_t{1} << 30;
inline constexpr int64_t kGgufMaxArrayCount = int64_t{1} << 30;
inline constexpr int kGgufMaxDimensions = 4;

// A file's headers may take this factor of its size in memory, plus the allowance. Only files made
// to exhaust memory come near: short strings, keys and tensor entries take more room in memory than
// in the file.
inline constexpr int64_t kGgufMemoryFactor = 2;
inline constexpr int64_t kGgufMemoryAllowanceBytes = int64_t{256} << 20;

// Of split files (spec F.10).
inline constexpr std::string_view kGgufSplitNumberKey = "split.no";
inline constexpr std::string_view kGgufSplitCountKey = "split.count";
inline constexpr std::string_view kGgufSplitTensorCountKey = "split.tensors.count";
inline constexpr int64_t kGgufMaxSplitCount = 4096;

}  // namespace weft
