#include "common/http/metrics_access.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/base/equal_secrets.h"
#include "common/base/status_macros.h"
#include "common/http/bearer_token.h"

namespace weft {
absl::StatusOr<std::unique_ptr<MetricsAccess>> MetricsAccess::Create(const std::string& token_file,
                                                                     bool open, Logger* logger) {
  std::unique_ptr<TokenFile> token;
  if (!token_file.empty()) {
    ASSIGN_OR_RETURN(token, TokenFile::Open(token_file, 1, logger));
  }
  return absl::WrapUnique(new MetricsAccess(std::move(token), open));
}

std::optional<HttpReply> MetricsAccess::Refuse(const HttpRequest& request) {
  if (token_ != nullptr) {
    // Compared in a time that tells nothing but the length.
    const std::optional<std::string_view> given = BearerToken(request.authorization);
    if (given.has_value() && EqualSecrets(*given, token_->Token())) return std::nullopt;
    HttpReply reply = TextReply(401, "want the header Authorization: Bearer TOKEN");
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
    return reply;
  }
  if (open_) return std::nullopt;
  return TextReply(403,
                   "metrics beyond this machine want --metrics-token-file FILE, or --insecure on a "
                   "network that is trusted");
}

}  // namespace weft
