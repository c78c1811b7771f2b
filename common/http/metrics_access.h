// Who may read /metrics: whoever has a token, or anybody where that was asked for.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/http/http_message.h"

namespace weft {

// The token in a file: its first line, up to 1024 visible characters. Any thread may call.
class TokenFile {
 public:
  // Errors: NOT_FOUND; INVALID_ARGUMENT naming the file, never the token.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path);

  // Whether a header "Authorization: Bearer TOKEN" has it, in a time that tells nothing but its
  // length. Reads a file that has changed again; one that cannot be read any longer leaves the
  // token that was.
  bool Admits(std::string_view authorization);

 private:
  explicit TokenFile(std::string path) : path_(std::move(path)) {}
  absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  Mutex mutex_;
  struct stat seen_ ABSL_GUARDED_BY(mutex_) = {};
  std::string token_ ABSL_GUARDED_BY(mutex_);
};

class MetricsAccess {
 public:
  // `token_file` may be empty: then `open` says whether anybody may. Errors: those of TokenFile.
  static absl::StatusOr<std::unique_ptr<MetricsAccess>> Create(const std::string& token_file,
                                                               bool open);

  // Nothing where the request may be answered; else 401, or 403 with what to do.
  std::optional<HttpReply> Refuse(const HttpRequest& request);

 private:
  MetricsAccess(std::unique_ptr<TokenFile> token, bool open)
      : token_(std::move(token)), open_(open) {}

  const std::unique_ptr<TokenFile> token_;
  const bool open_;
};

}  // namespace weft
