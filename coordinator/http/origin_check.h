// Which pages of a browser may use the server: its own, and those that were named.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace weft {

struct OriginRules {
  // As browsers send them, "https://chat.example.com"; "*": any.
  std::vector<std::string> origins;
  // Host names in requests that are answered, without port; empty: any. A name of somebody else's
  // that points here is how a page gets around the rule of origins (DNS rebinding).
  std::vector<std::string> hosts;
};

// Whether `origin` is one that a browser can send, or "*". Errors: INVALID_ARGUMENT with it.
absl::Status CheckOriginText(std::string_view origin);

// Whether a request may come from a page of `origin` (empty: from no page) that names this server
// `host`. Errors: PERMISSION_DENIED.
absl::Status CheckOrigin(const OriginRules& rules, std::string_view origin, std::string_view host);

// Whether replies may be read by pages of `origin`, one of the named ones.
bool AllowsOrigin(const OriginRules& rules, std::string_view origin);

}  // namespace weft
