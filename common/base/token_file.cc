#include "common/base/token_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/small_file.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr size_t kLongestToken = 1024;
// Lines below the first do not count.
constexpr size_t kMostBytes = size_t{64} << 10;

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(const std::string& path,
                                                           size_t least_characters,
                                                           Logger* logger) {
  std::unique_ptr<TokenFile> file(new TokenFile(path, least_characters, logger));
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
  // Before the bytes: what is written meanwhile is read again.
  (void)stat(path_.c_str(), &found);
  ASSIGN_OR_RETURN(std::string line, ReadSmallFile(path_, kMostBytes));
  line.resize(std::min(line.size(), line.find('\n')));
  const std::string token(absl::StripAsciiWhitespace(line));
  const bool graphic = std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (token.size() < std::max<size_t>(least_, 1) || token.size() > kLongestToken || !graphic) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": want a token of ", std::max<size_t>(least_, 1), " to ",
                     kLongestToken, " visible ASCII characters in its first line"));
  }
  seen_ = found;
  token_ = token;
  complaint_.clear();
  return absl::OkStatus();
}

std::string TokenFile::Token() {
  MutexLock lock(mutex_);
  if (!Changed()) return token_;
  const absl::Status status = Read();
  if (status.ok() || status.message() == complaint_) return token_;
  complaint_ = std::string(status.message());
  if (logger_ != nullptr) {
    logger_->Warning(StdView(absl::StrCat(complaint_, "; the token that was goes on")));
  }
  return token_;
}

}  // namespace weft
