// A secret of people or machines in a file, which may be replaced while it is in use.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "common/base/mutex.h"

namespace weft {

// The token is the file's first line, up to 1024 visible characters. Any thread may call.
class TokenFile {
 public:
  // `logger` (may be null) outlives it. Errors: those of ReadSmallFile; INVALID_ARGUMENT naming the
  // file, never the token, unless it has at least that many characters.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path,
                                                         size_t least_characters = 1,
                                                         Logger* logger = nullptr);

  // Reads a file that has changed again; one that cannot be read any longer leaves the token that
  // was, and the logger hears of it once.
  std::string Token();

 private:
  TokenFile(std::string path, size_t least, Logger* logger)
      : path_(std::move(path)), least_(least), logger_(logger) {}
  absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const size_t least_;
  Logger* const logger_;
  Mutex mutex_;
  struct stat seen_ ABSL_GUARDED_BY(mutex_) = {};
  std::string token_ ABSL_GUARDED_BY(mutex_);
  std::string complaint_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
