#include "coordinator/cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr int kMostNames = 100;  // tried for a temporary file

absl::Status FileError(const std::string& path, const char* what) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot ", what));
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status CheckTarget(const std::string& path, const struct stat& target,
                         absl::Span<const std::string> inputs) {
  if (!S_ISREG(target.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  for (const std::string& input : inputs) {
    struct stat source = {};
    if (stat(input.c_str(), &source) == 0 && source.st_dev == target.st_dev &&
        source.st_ino == target.st_ino) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": is the input file ", input, "; write elsewhere"));
    }
  }
  // It is replaced, not written, but who protects a file means its name.
  return access(path.c_str(), W_OK) == 0 ? absl::OkStatus() : FileError(path, "write");
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(
    const std::string& path, absl::Span<const std::string> inputs) {
  std::unique_ptr<OutputFile> file(new OutputFile(path));
  struct stat target = {};
  const bool exists = stat(path.c_str(), &target) == 0;
  if (exists) {
    RETURN_IF_ERROR(CheckTarget(path, target, inputs));
    char* real = realpath(path.c_str(), nullptr);
    if (real == nullptr) return FileError(path, "resolve");
    file->path_ = real;
    free(real);
  } else if (errno != ENOENT || path.empty() || path.back() == '/') {
    return FileError(path, "create");
  }
  RETURN_IF_ERROR(file->OpenTemporary());
  if (exists && fchmod(file->descriptor_, target.st_mode & 07777) != 0) {
    return FileError(path, "set the permissions of");
  }
  return file;
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

// A file without a name leaves nothing behind, whatever ends the process; where the file system
// knows none, one with a name beside the target.
absl::Status OutputFile::OpenTemporary() {
  descriptor_ = open(FolderOf(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor_ >= 0) return absl::OkStatus();
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return FileError(path_, "create");
  for (int i = 0; i < kMostNames; ++i) {
    std::string name = absl::StrCat(path_, ".tmp", getpid(), "-", i);
    descriptor_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) {
      temporary_ = std::move(name);
      return absl::OkStatus();
    }
    if (errno != EEXIST) break;
  }
  return FileError(path_, "create");
}

absl::Status OutputFile::NameTemporary() {
  if (!temporary_.empty()) return absl::OkStatus();
  const std::string open_file = absl::StrCat("/proc/self/fd/", descriptor_);
  for (int i = 0; i < kMostNames; ++i) {
    std::string name = absl::StrCat(path_, ".tmp", getpid(), "-", i);
    if (linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = std::move(name);
      return absl::OkStatus();
    }
    if (errno != EEXIST) break;
  }
  return FileError(path_, "create");
}

absl::Status OutputFile::Write(const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(descriptor_, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path_, "write");
    at += written;
    bytes -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Finish() {
  RETURN_IF_ERROR(NameTemporary());
  if (close(std::exchange(descriptor_, -1)) != 0) return FileError(path_, "write");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return FileError(path_, "replace");
  temporary_.clear();
  return absl::OkStatus();
}

}  // namespace weft
