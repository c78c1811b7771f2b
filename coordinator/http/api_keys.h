// Who may use the API.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace weft {

// Whether a client can send that as a key: up to 1024 bytes, no control characters.
bool IsApiKey(std::string_view key);

// Keys of a file: one a line; empty lines and those that begin with # do not count. Errors:
// NOT_FOUND; INVALID_ARGUMENT naming the line, never the key.
absl::StatusOr<std::vector<std::string>> ReadApiKeys(const std::string& path);

class ApiKeys {
 public:
  // None: everybody may.
  explicit ApiKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  bool empty() const { return keys_.empty(); }
  // Which of the keys a header "Authorization: Bearer KEY" has; nothing if none. The time tells
  // nothing about the keys but their lengths.
  std::optional<size_t> Find(std::string_view authorization) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace weft
