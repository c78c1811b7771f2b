// The secret in a header "Authorization: Bearer SECRET" (RFC 6750).
#pragma once

#include <optional>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "common/base/absl_view.h"

namespace weft {

// Without the spaces around it; nothing where the header is of another kind. Points into it.
inline std::optional<std::string_view> BearerToken(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (!absl::StartsWithIgnoreCase(AbslView(authorization), AbslView(kScheme))) return std::nullopt;
  return StdView(absl::StripAsciiWhitespace(AbslView(authorization.substr(kScheme.size()))));
}

}  // namespace weft
