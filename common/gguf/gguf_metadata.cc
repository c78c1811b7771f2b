#include "common/gguf/gguf_metadata.h"

#include <limits>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

template <typename T>
constexpr std::string_view ScalarName() {
  if constexpr (std::is_same_v<T, uint8_t>) return "u8";
  if constexpr (std::is_same_v<T, int8_t>) return "i8";
  if constexpr (std::is_same_v<T, uint16_t>) return "u16";
  if constexpr (std::is_same_v<T, int16_t>) return "i16";
  if constexpr (std::is_same_v<T, uint32_t>) return "u32";
  if constexpr (std::is_same_v<T, int32_t>) return "i32";
  if constexpr (std::is_same_v<T, float>) return "f32";
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_same_v<T, std::string>) return "string";
  if constexpr (std::is_same_v<T, uint64_t>) return "u64";
  if constexpr (std::is_same_v<T, int64_t>) return "i64";
  if constexpr (std::is_same_v<T, double>) return "f64";
}

template <typename T>
constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// True if `value` (an integer of any width and sign) fits int64_t.
template <typename T>
bool FitsInt64(T value) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    return value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  }
  return true;
}

absl::Status WrongType(std::string_view key, const GgufValue& value, std::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("key '", AbslView(key), "' is ",
                                                 GgufTypeText(value), ", want ", AbslView(wanted)));
}

absl::Status TooLarge(std::string_view key, uint64_t value) {
  return absl::InvalidArgumentError(
      absl::StrCat("key '", AbslView(key), "' = ", value, ", want an integer below 2^63"));
}

// The value of `key`. Errors: NOT_FOUND.
absl::StatusOr<const GgufValue*> Require(const GgufMetadata& metadata, std::string_view key) {
  const GgufValue* value = metadata.Find(key);
  if (value == nullptr)
    return absl::NotFoundError(absl::StrCat("missing key '", AbslView(key), "'"));
  return value;
}

// The array of `key` as the vector type it is stored in.
template <typename T>
absl::StatusOr<const std::vector<T>*> RequireArray(const GgufMetadata& metadata,
                                                   std::string_view key, std::string_view wanted) {
  ASSIGN_OR_RETURN(const GgufValue* value, Require(metadata, key));
  if (const auto* array = std::get_if<GgufArray>(value)) {
    if (const auto* elements = std::get_if<std::vector<T>>(array)) return elements;
  }
  return WrongType(key, *value, wanted);
}

}  // namespace

std::string GgufTypeText(const GgufValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, GgufArray>) {
          return std::visit(
              [](const auto& elements) {
                using Element = typename std::decay_t<decltype(elements)>::value_type;
                return absl::StrCat("array of ", AbslView(ScalarName<Element>()), " [",
                                    elements.size(), "]");
              },
              held);
        } else {
          return std::string(ScalarName<T>());
        }
      },
      value);
}

void GgufMetadata::Reserve(size_t count) {
  entries_.reserve(count);
  index_.reserve(count);
}

absl::Status GgufMetadata::Add(std::string key, GgufValue value) {
  const auto [position, inserted] = index_.try_emplace(key, entries_.size());
  if (!inserted) return absl::AlreadyExistsError(absl::StrCat("duplicate key '", key, "'"));
  entries_.emplace_back(std::move(key), std::move(value));
  return absl::OkStatus();
}

void GgufMetadata::Set(std::string key, GgufValue value) {
  const auto [position, inserted] = index_.try_emplace(key, entries_.size());
  if (inserted) {
    entries_.emplace_back(std::move(key), std::move(value));
  } else {
    entries_[position->second].second = std::move(value);
  }
}

const GgufValue* GgufMetadata::Find(std::string_view key) const {
  const auto found = index_.find(AbslView(key));
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

absl::StatusOr<int64_t> GgufMetadata::Integer(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, Require(*this, key));
  return std::visit(
      [&](const auto& held) -> absl::StatusOr<int64_t> {
        using T = std::decay_t<decltype(held)>;
        if constexpr (kIsInteger<T>) {
          if (!FitsInt64(held)) return TooLarge(key, static_cast<uint64_t>(held));
          return static_cast<int64_t>(held);
        } else {
          return WrongType(key, *value, "an integer");
        }
      },
      *value);
}

absl::StatusOr<double> GgufMetadata::Float(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, Require(*this, key));
  if (const auto* held = std::get_if<float>(value)) return *held;
  if (const auto* held = std::get_if<double>(value)) return *held;
  return WrongType(key, *value, "f32");
}

absl::StatusOr<bool> GgufMetadata::Bool(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, Require(*this, key));
  if (const auto* held = std::get_if<bool>(value)) return *held;
  return WrongType(key, *value, "bool");
}

absl::StatusOr<std::string_view> GgufMetadata::String(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, Require(*this, key));
  if (const auto* held = std::get_if<std::string>(value)) return std::string_view(*held);
  return WrongType(key, *value, "string");
}

absl::StatusOr<absl::Span<const std::string>> GgufMetadata::Strings(std::string_view key) const {
  ASSIGN_OR_RETURN(const auto* strings, RequireArray<std::string>(*this, key, "array of strings"));
  return absl::MakeConstSpan(*strings);
}

absl::StatusOr<std::vector<int64_t>> GgufMetadata::Integers(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, Require(*this, key));
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr) return WrongType(key, *value, "array of integers");
  return std::visit(
      [&](const auto& elements) -> absl::StatusOr<std::vector<int64_t>> {
        using Element = typename std::decay_t<decltype(elements)>::value_type;
        if constexpr (kIsInteger<Element>) {
          for (const Element element : elements) {
            if (!FitsInt64(element)) return TooLarge(key, static_cast<uint64_t>(element));
          }
          return std::vector<int64_t>(elements.begin(), elements.end());
        } else {
          return WrongType(key, *value, "array of integers");
        }
      },
      *array);
}

absl::StatusOr<std::vector<float>> GgufMetadata::Floats(std::string_view key) const {
  ASSIGN_OR_RETURN(const auto* floats, RequireArray<float>(*this, key, "array of f32"));
  return *floats;
}

absl::StatusOr<std::vector<bool>> GgufMetadata::Bools(std::string_view key) const {
  ASSIGN_OR_RETURN(const auto* bools, RequireArray<bool>(*this, key, "array of bools"));
  return *bools;
}

absl::StatusOr<int64_t> GgufMetadata::IntegerOr(std::string_view key, int64_t value) const {
  return Has(key) ? Integer(key) : value;
}

absl::StatusOr<double> GgufMetadata::FloatOr(std::string_view key, double value) const {
  return Has(key) ? Float(key) : value;
}

absl::StatusOr<bool> GgufMetadata::BoolOr(std::string_view key, bool value) const {
  return Has(key) ? Bool(key) : value;
}

absl::StatusOr<std::string> GgufMetadata::StringOr(std::string_view key,
                                                   std::string_view value) const {
  if (!Has(key)) return std::string(value);
  ASSIGN_OR_RETURN(const std::string_view held, String(key));
  return std::string(held);
}

}  // namespace weft
