// Who may read /metrics: whoever has a token, or anybody where that was asked for.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/base/token_file.h"
#include "common/http/http_message.h"

namespace weft {

class MetricsAccess {
 public:
  // `token_file` may be empty: then `open` says whether anybody may. `logger` as for TokenFile,
  // whose errors these are.
  static absl::StatusOr<std::unique_ptr<MetricsAccess>> Create(const std::string& token_file,
                                                               bool open, Logger* logger = nullptr);

  // Nothing where the request may be answered; else 401, or 403 with what to do.
  std::optional<HttpReply> Refuse(const HttpRequest& request);

 private:
  MetricsAccess(std::unique_ptr<TokenFile> token, bool open)
      : token_(std::move(token)), open_(open) {}

  const std::unique_ptr<TokenFile> token_;
  const bool open_;
};

}  // namespace weft
