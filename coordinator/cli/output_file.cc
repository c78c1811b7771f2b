#include "coordinator/cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

absl::Status FileError(const std::string& path, const char* what) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot ", what));
}

// The checks come before the file is emptied.
absl::Status CheckTarget(int descriptor, const std::string& path,
                         absl::Span<const std::string> inputs) {
  struct stat target = {};
  if (fstat(descriptor, &target) != 0) return FileError(path, "stat");
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
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(
    const std::string& path, absl::Span<const std::string> inputs) {
  // Not blocking: opening a pipe that nobody reads would wait for ever.
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
  if (descriptor < 0) return FileError(path, "create");
  absl::Status status = CheckTarget(descriptor, path, inputs);
  if (status.ok() && ftruncate(descriptor, 0) != 0) status = FileError(path, "empty");
  if (!status.ok()) {
    close(descriptor);
    return status;
  }
  return std::unique_ptr<OutputFile>(new OutputFile(path, descriptor));
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!finished_) unlink(path_.c_str());
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
  if (close(std::exchange(descriptor_, -1)) != 0) return FileError(path_, "write");
  finished_ = true;
  return absl::OkStatus();
}

}  // namespace weft
