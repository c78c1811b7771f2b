#include "common/base/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// Of files whose size is not told beforehand (/proc).
constexpr size_t kFirstBytes = 4096;

absl::Status Unreadable(const std::string& path, int error) {
  const absl::Status status = absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot be read"));
  switch (error) {
    case ENOTDIR:
      return absl::NotFoundError(status.message());
    // Paths that can never work: Abseil has no code for them, or one for another trouble.
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO:
    case ENODEV:
    case EISDIR:
      return absl::InvalidArgumentError(status.message());
    default:
      return status;
  }
}

absl::StatusOr<std::string> ReadAll(int descriptor, const std::string& path, size_t most_bytes) {
  struct stat facts = {};
  if (fstat(descriptor, &facts) != 0) return Unreadable(path, errno);
  if (!S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not a regular file"));
  }
  const size_t told = static_cast<size_t>(std::max<off_t>(facts.st_size, 0));
  std::string text;
  size_t size = 0;
  ssize_t count = 1;
  if (told <= most_bytes) text.resize(std::min(std::max(told, kFirstBytes), most_bytes) + 1);
  while (count != 0 && size < text.size()) {
    count = read(descriptor, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Unreadable(path, errno);
    size += static_cast<size_t>(count);
    if (size == text.size()) text.resize(std::min(2 * size, most_bytes + 1));
  }
  if (told > most_bytes || size > most_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is longer than ", most_bytes, " bytes"));
  }
  text.resize(size);
  return text;
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t most_bytes) {
  // O_NONBLOCK: opening a pipe must not wait for a writer before it can be refused.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return Unreadable(path, errno);
  absl::StatusOr<std::string> text = ReadAll(descriptor, path, most_bytes);
  close(descriptor);
  return text;
}

}  // namespace weft
