// Reading JSON that people wrote: every error says where in the text it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace weft {

// Parses one JSON text. Errors: INVALID_ARGUMENT with line and column of what is no JSON; a key
// that stands twice in one object; more than `max_depth` values inside each other.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, int max_depth);

// A value with its path, "hosts[1].devices[0]". Outlived by the JSON it points into. Every error is
// INVALID_ARGUMENT and starts with the path of the value at fault.
class JsonValue {
 public:
  explicit JsonValue(const nlohmann::json& json, std::string path = "")
      : json_(&json), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  bool is_array() const { return json_->is_array(); }
  absl::Status Error(const std::string& what) const;

  // The value is an object without other keys than these.
  absl::Status CheckKeys(const std::vector<std::string_view>& keys) const;
  bool Has(std::string_view key) const { return json_->contains(key); }
  // A member of an object. Error: it is missing.
  absl::StatusOr<JsonValue> At(std::string_view key) const;
  // The elements of an array of at most `max_count`.
  absl::StatusOr<std::vector<JsonValue>> Elements(int64_t max_count) const;

  // Text of 1 to `max_bytes` bytes without control characters.
  absl::StatusOr<std::string> Text(size_t max_bytes) const;
  absl::StatusOr<bool> Bool() const;
  // An integer, or a number without fraction, of that range.
  absl::StatusOr<int64_t> Integer(int64_t least, int64_t most) const;
  // A finite number >= 0.
  absl::StatusOr<double> Amount() const;

 private:
  const nlohmann::json* json_;
  std::string path_;
};

}  // namespace weft
