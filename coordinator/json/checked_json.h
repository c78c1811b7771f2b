// Reading JSON that came from outside: every error says where in the text it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace weft {

// With the members of objects in the order of the text.
using Json = nlohmann::ordered_json;

struct JsonLimits {
  int depth = 64;         // objects and arrays inside each other
  size_t members = 1024;  // of an object; looking one up takes that long
  int64_t values = int64_t{1} << 20;
};

// Parses one JSON text. Errors: INVALID_ARGUMENT with line and column of what is no JSON, or not
// UTF-8; a key that stands twice in one object; what is beyond a limit.
absl::StatusOr<Json> ParseJson(std::string_view text, const JsonLimits& limits);

// A value with its path, "hosts[1].devices[0]". Outlived by the JSON it points into. Every error is
// INVALID_ARGUMENT and starts with the path of the value at fault.
class JsonValue {
 public:
  explicit JsonValue(const Json& json, std::string path = "")
      : json_(&json), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const Json& json() const { return *json_; }
  bool is_array() const { return json_->is_array(); }
  bool is_object() const { return json_->is_object(); }
  bool is_string() const { return json_->is_string(); }
  absl::Status Error(const std::string& what) const;

  // The value is an object without other keys than these.
  absl::Status CheckKeys(const std::vector<std::string_view>& keys) const;
  bool Has(std::string_view key) const { return json_->contains(key); }
  // A member of an object. Error: it is missing, or null, which is as good.
  absl::StatusOr<JsonValue> At(std::string_view key) const;
  // A member of an object, unless it is missing or null.
  std::optional<JsonValue> Find(std::string_view key) const;
  // The elements of an array of at most `max_count`.
  absl::StatusOr<std::vector<JsonValue>> Elements(int64_t max_count) const;

  // Text of 1 to `max_bytes` bytes without control characters.
  absl::StatusOr<std::string> Text(size_t max_bytes) const;
  // Any text of up to `max_bytes` bytes.
  absl::StatusOr<std::string> String(size_t max_bytes) const;
  absl::StatusOr<bool> Bool() const;
  // An integer, or a number without fraction, of that range.
  absl::StatusOr<int64_t> Integer(int64_t least, int64_t most) const;
  // A number of that range.
  absl::StatusOr<double> Number(double least, double most) const;
  // A finite number >= 0.
  absl::StatusOr<double> Amount() const;

 private:
  const Json* json_;
  std::string path_;
};

}  // namespace weft
