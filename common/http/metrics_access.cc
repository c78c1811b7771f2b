#include "common/http/metrics_access.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/equal_secrets.h"
#include "common/base/status_macros.h"
#include "common/http/bearer_token.h"

namespace weft {
namespace {

constexpr size_t kLongestToken = 1024;

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(const std::string& path) {
  std::unique_ptr<TokenFile> file(new TokenFile(path));
  MutexLock lock(file->mutex_);
  RETURN_IF_ERROR(file->Read());
  return file;
}

bool TokenFile::Changed() {
  struct stat now = {};
  return stat(path_.c_str(), &now) == 0 && !SameFile(now, seen_);
}

absl::Status TokenFile::Read() {
  struct stat found = {};
  std::ifstream file(path_);
  // Before the bytes: what is written meanwhile is read again.
  if (!file || stat(path_.c_str(), &found) != 0) {
    return absl::NotFoundError(absl::StrCat(path_, ": cannot be read"));
  }
  std::string line(kLongestToken + 3, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(file.gcount()));
  line.resize(std::min(line.size(), line.find('\n')));
  const std::string token(absl::StripAsciiWhitespace(line));
  const bool graphic = std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (token.empty() || token.size() > kLongestToken || !graphic) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": want a token of 1 to ", kLongestToken,
                                                   " visible ASCII characters in its first line"));
  }
  seen_ = found;
  token_ = token;
  return absl::OkStatus();
}

bool TokenFile::Admits(std::string_view authorization) {
  MutexLock lock(mutex_);
  if (Changed()) Read().IgnoreError();
  const std::optional<std::string_view> given = BearerToken(authorization);
  return given.has_value() && EqualSecrets(*given, token_);
}

absl::StatusOr<std::unique_ptr<MetricsAccess>> MetricsAccess::Create(const std::string& token_file,
                                                                     bool open) {
  std::unique_ptr<TokenFile> token;
  if (!token_file.empty()) {
    ASSIGN_OR_RETURN(token, TokenFile::Open(token_file));
  }
  return absl::WrapUnique(new MetricsAccess(std::move(token), open));
}

std::optional<HttpReply> MetricsAccess::Refuse(const HttpRequest& request) {
  if (token_ != nullptr) {
    if (token_->Admits(request.authorization)) return std::nullopt;
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
