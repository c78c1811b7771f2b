#include "common/gguf/gguf_metadata_reader.h"

#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/gguf/gguf_format.h"

namespace weft {
namespace {

// Upper bound of what a key costs in memory besides its text and long values: the entry and its row
// in the index.
constexpr int64_t kKeyCost = sizeof(std::pair<std::string, GgufValue>) + 160;

// Calls `use` with a value of the C++ type that stands for a scalar type (not kArray), whose id was
// checked.
template <typename Use>
auto WithScalarType(GgufValueType type, Use use) {
  switch (type) {
    case GgufValueType::kU8:
      return use(uint8_t{});
    case GgufValueType::kI8:
      return use(int8_t{});
    case GgufValueType::kU16:
      return use(uint16_t{});
    case GgufValueType::kI16:
      return use(int16_t{});
    case GgufValueType::kU32:
      return use(uint32_t{});
    case GgufValueType::kI32:
      return use(int32_t{});
    case GgufValueType::kF32:
      return use(float{});
    case GgufValueType::kBool:
      return use(bool{});
    case GgufValueType::kU64:
      return use(uint64_t{});
    case GgufValueType::kI64:
      return use(int64_t{});
    case GgufValueType::kF64:
      return use(double{});
    case GgufValueType::kString:
    case GgufValueType::kArray:
      break;
  }
  return use(std::string{});
}

template <typename T>
absl::StatusOr<T> ReadElement(GgufCursor& cursor, const GgufField& field) {
  if constexpr (std::is_same_v<T, bool>) {
    return cursor.Bool(field);
  } else if constexpr (std::is_same_v<T, std::string>) {
    ASSIGN_OR_RETURN(const std::string_view text, cursor.String(field, kGgufMaxStringLength));
    RETURN_IF_ERROR(cursor.Charge(field, GgufStringCost(text.size()) - GgufStringCost(0)));
    return std::string(text);
  } else {
    return cursor.Scalar<T>(field);
  }
}

// The elements of an array whose count was checked.
template <typename T>
absl::StatusOr<GgufArray> ReadElements(GgufCursor& cursor, std::string_view key, int64_t count) {
  constexpr int64_t kElementBytes = std::is_same_v<T, bool> ? 1 : sizeof(T);
  RETURN_IF_ERROR(cursor.Charge({"", key}, count * kElementBytes));
  std::vector<T> elements;
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    ASSIGN_OR_RETURN(const auto bytes, cursor.Bytes({"", key}, count * kElementBytes));
    elements.resize(count);
    if (count > 0) std::memcpy(elements.data(), bytes.data(), bytes.size());
  } else {
    elements.reserve(count);
    for (int64_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(T element, ReadElement<T>(cursor, {"", key, i}));
      elements.push_back(std::move(element));
    }
  }
  return GgufArray(std::move(elements));
}

absl::StatusOr<GgufValueType> ReadValueType(GgufCursor& cursor, const GgufField& field,
                                            bool array_allowed) {
  const int64_t at = cursor.position();
  ASSIGN_OR_RETURN(const uint32_t id, cursor.Scalar<uint32_t>(field));
  if (id >= kGgufValueTypeCount) {
    return cursor.Error(field, absl::StrCat(id), "unknown value type", at);
  }
  const auto type = static_cast<GgufValueType>(id);
  if (type == GgufValueType::kArray && !array_allowed) {
    return cursor.Error(field, absl::StrCat(id), "arrays of arrays are not supported", at);
  }
  return type;
}

absl::StatusOr<GgufArray> ReadArray(GgufCursor& cursor, std::string_view key) {
  ASSIGN_OR_RETURN(const GgufValueType type,
                   ReadValueType(cursor, {"", key, -1, " element type"}, false));
  const GgufField field{"", key, -1, " element count"};
  const int64_t at = cursor.position();
  ASSIGN_OR_RETURN(const uint64_t count, cursor.Scalar<uint64_t>(field));
  return WithScalarType(type, [&](const auto& sample) -> absl::StatusOr<GgufArray> {
    using T = std::decay_t<decltype(sample)>;
    // A string takes at least its length field.
    constexpr uint64_t kBytes =
        std::is_same_v<T, std::string> ? 8 : (std::is_same_v<T, bool> ? 1 : sizeof(T));
    if (count > static_cast<uint64_t>(cursor.remaining()) / kBytes) {
      return cursor.Error(field, absl::StrCat(count),
                          absl::StrCat("more elements than fit into the ", cursor.remaining(),
                                       " bytes left of the file"),
                          at);
    }
    if (count > static_cast<uint64_t>(kGgufMaxArrayCount)) {
      return cursor.Error(field, absl::StrCat(count),
                          absl::StrCat("more elements than the limit of ", kGgufMaxArrayCount), at);
    }
    return ReadElements<T>(cursor, key, static_cast<int64_t>(count));
  });
}

absl::StatusOr<GgufValue> ReadValue(GgufCursor& cursor, std::string_view key) {
  ASSIGN_OR_RETURN(const GgufValueType type,
                   ReadValueType(cursor, {"", key, -1, " value type"}, true));
  if (type == GgufValueType::kArray) {
    ASSIGN_OR_RETURN(GgufArray array, ReadArray(cursor, key));
    return GgufValue(std::move(array));
  }
  return WithScalarType(type, [&](const auto& sample) -> absl::StatusOr<GgufValue> {
    using T = std::decay_t<decltype(sample)>;
    ASSIGN_OR_RETURN(auto value, ReadElement<T>(cursor, {"", key}));
    return GgufValue(std::move(value));
  });
}

// Rule 6 of spec H.2.
absl::Status CheckAlignment(const GgufCursor& cursor, const GgufValue& value, int64_t at) {
  const GgufField field{"", kGgufAlignmentKey};
  const auto* alignment = std::get_if<uint32_t>(&value);
  if (alignment == nullptr) return cursor.Error(field, GgufTypeText(value), "must be u32", at);
  if (IsPowerOfTwo(*alignment) && *alignment >= kGgufMinAlignment &&
      *alignment <= kGgufMaxAlignment) {
    return absl::OkStatus();
  }
  return cursor.Error(
      field, absl::StrCat(*alignment),
      absl::StrCat("must be a power of two from ", kGgufMinAlignment, " to ", kGgufMaxAlignment),
      at);
}

}  // namespace

absl::StatusOr<GgufMetadata> ReadGgufMetadata(GgufCursor& cursor, int64_t count) {
  RETURN_IF_ERROR(cursor.Charge({"key count"}, count * kKeyCost));
  GgufMetadata metadata;
  metadata.Reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const GgufField field{"key ", "", i};
    const int64_t at = cursor.position();
    ASSIGN_OR_RETURN(const std::string_view key, cursor.Name(field, kGgufMaxKeyLength));
    if (metadata.Has(key)) return cursor.Error(field, std::string(key), "duplicate key", at);
    // Once in the entry and once in the index.
    RETURN_IF_ERROR(cursor.Charge(field, 2 * GgufStringCost(key.size())));
    const int64_t value_at = cursor.position();
    ASSIGN_OR_RETURN(GgufValue value, ReadValue(cursor, key));
    if (key == kGgufAlignmentKey) RETURN_IF_ERROR(CheckAlignment(cursor, value, value_at));
    RETURN_IF_ERROR(metadata.Add(std::string(key), std::move(value)));
  }
  return metadata;
}

}  // namespace weft
