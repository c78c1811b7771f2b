#include "common/base/token_file.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr size_t kLongestToken = 1024;

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(const std::string& path,
                                                           size_t least_characters) {
  std::unique_ptr<TokenFile> file(new TokenFile(path, least_characters));
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
  if (token.size() < std::max<size_t>(least_, 1) || token.size() > kLongestToken || !graphic) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": want a token of ", std::max<size_t>(least_, 1), " to ",
                     kLongestToken, " visible ASCII characters in its first line"));
  }
  seen_ = found;
  token_ = token;
  return absl::OkStatus();
}

std::string TokenFile::Token() {
  MutexLock lock(mutex_);
  if (Changed()) Read().IgnoreError();
  return token_;
}

}  // namespace weft
