// The key-value section of a GGUF file, by typed look-up with errors that name the key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace weft {

// Arrays hold elements of one type. Strings are copied out of the file.
using GgufArray = std::variant<std::vector<uint8_t>, std::vector<int8_t>, std::vector<uint16_t>,
                               std::vector<int16_t>, std::vector<uint32_t>, std::vector<int32_t>,
                               std::vector<float>, std::vector<bool>, std::vector<std::string>,
                               std::vector<uint64_t>, std::vector<int64_t>, std::vector<double>>;
using GgufValue = std::variant<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float, bool,
                               std::string, uint64_t, int64_t, double, GgufArray>;

// "u32", "string", "array of f32 [32000]".
std::string GgufTypeText(const GgufValue& value);

class GgufMetadata {
 public:
  // Makes room for `count` entries at once.
  void Reserve(size_t count);

  // Keeps the order of insertion. Errors: ALREADY_EXISTS if the key is present.
  absl::Status Add(std::string key, GgufValue value);
  // Adds or replaces.
  void Set(std::string key, GgufValue value);

  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  const GgufValue* Find(std::string_view key) const;
  absl::Span<const std::pair<std::string, GgufValue>> entries() const { return entries_; }

  // Typed look-ups. Errors: NOT_FOUND "missing key 'K'"; INVALID_ARGUMENT "key 'K' is u32, want
  // string". An integer of any width and sign is accepted where its value fits.
  absl::StatusOr<int64_t> Integer(std::string_view key) const;
  absl::StatusOr<double> Float(std::string_view key) const;  // f32 or f64
  absl::StatusOr<bool> Bool(std::string_view key) const;
  absl::StatusOr<std::string_view> String(
      std::string_view key) const;  // valid until this is changed
  absl::StatusOr<absl::Span<const std::string>> Strings(std::string_view key) const;
  absl::StatusOr<std::vector<int64_t>> Integers(std::string_view key) const;
  absl::StatusOr<std::vector<float>> Floats(std::string_view key) const;
  absl::StatusOr<std::vector<bool>> Bools(std::string_view key) const;

  // The same with a default for an absent key; a present key of the wrong type is still an error.
  absl::StatusOr<int64_t> IntegerOr(std::string_view key, int64_t value) const;
  absl::StatusOr<double> FloatOr(std::string_view key, double value) const;
  absl::StatusOr<bool> BoolOr(std::string_view key, bool value) const;
  absl::StatusOr<std::string> StringOr(std::string_view key, std::string_view value) const;

 private:
  std::vector<std::pair<std::string, GgufValue>> entries_;
  absl::flat_hash_map<std::string, size_t> index_;
};

}  // namespace weft
