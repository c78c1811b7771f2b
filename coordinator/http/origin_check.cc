#include "coordinator/http/origin_check.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"

namespace weft {
namespace {

constexpr size_t kShownBytes = 100;

// "[::1]" of "[::1]:8080", "localhost" of "localhost:8080".
std::string_view NameOf(std::string_view host) {
  if (!host.empty() && host[0] == '[') return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool Same(std::string_view a, std::string_view b) {
  return absl::EqualsIgnoreCase(AbslView(a), AbslView(b));
}

bool Contains(const std::vector<std::string>& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const auto& entry) { return Same(entry, name); });
}

}  // namespace

absl::Status CheckOriginText(std::string_view origin) {
  if (origin == "*") return absl::OkStatus();
  const size_t scheme = origin.find("://");
  const std::string_view rest =
      scheme == std::string_view::npos ? std::string_view() : origin.substr(scheme + 3);
  const bool plain = std::all_of(rest.begin(), rest.end(),
                                 [](char c) { return absl::ascii_isgraph(c) && c != '/'; });
  if (scheme != 0 && !rest.empty() && plain) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", EscapedText(origin, kShownBytes),
                   "': want SCHEME://HOST[:PORT] without a path, as browsers send it, or *"));
}

absl::Status CheckOrigin(const OriginRules& rules, std::string_view origin, std::string_view host) {
  if (!rules.hosts.empty() && !host.empty() && !Contains(rules.hosts, NameOf(host))) {
    return absl::PermissionDeniedError(
        absl::StrCat("this server is not called ", EscapedText(host, kShownBytes)));
  }
  if (origin.empty() || AllowsOrigin(rules, origin)) return absl::OkStatus();
  // A page of this server itself.
  const size_t scheme = origin.find("://");
  if (scheme != std::string_view::npos && Same(origin.substr(scheme + 3), host)) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat("pages of ", EscapedText(origin, kShownBytes), " may not use this server"));
}

bool AllowsOrigin(const OriginRules& rules, std::string_view origin) {
  return !origin.empty() && (Contains(rules.origins, origin) || Contains(rules.origins, "*"));
}

}  // namespace weft
