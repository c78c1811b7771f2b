#include "coordinator/http/api_keys.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/equal_secrets.h"
#include "common/base/small_file.h"
#include "common/base/status_macros.h"
#include "common/http/bearer_token.h"

namespace weft {
namespace {

constexpr size_t kMostKeys = 10000;
constexpr size_t kLongestKey = 1024;
// All of them, and words about them.
constexpr size_t kMostBytes = size_t{16} << 20;

}  // namespace

bool IsApiKey(std::string_view key) {
  return !key.empty() && key.size() <= kLongestKey &&
         std::none_of(key.begin(), key.end(),
                      [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); });
}

absl::StatusOr<std::vector<std::string>> ReadApiKeys(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kMostBytes));
  std::vector<std::string> keys;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::string key(absl::StripAsciiWhitespace(line));
    if (key.empty() || key[0] == '#') continue;
    const bool graphic = std::all_of(key.begin(), key.end(), [](char c) {
      return absl::ascii_isgraph(static_cast<unsigned char>(c));
    });
    if (!graphic || key.size() > kLongestKey || keys.size() == kMostKeys) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": line ", number, ": want one key of up to ", kLongestKey,
                       " visible ASCII characters a line, and up to ", kMostKeys, " of them"));
    }
    keys.push_back(key);
  }
  if (keys.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": has no key"));
  return keys;
}

std::optional<size_t> ApiKeys::Find(std::string_view authorization) const {
  const std::optional<std::string_view> given = BearerToken(authorization);
  if (!given.has_value()) return std::nullopt;
  std::optional<size_t> found;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (EqualSecrets(*given, keys_[i])) found = i;
  }
  return found;
}

}  // namespace weft
