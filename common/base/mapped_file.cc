#include "common/base/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

absl::Status FileError(const std::string& path, const char* what) {
  const int error = errno;
  absl::Status status = absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot ", what));
  // A path that can never work is the caller's mistake; Abseil has no code for it.
  if (error != ELOOP && error != ENAMETOOLONG) return status;
  return absl::InvalidArgumentError(status.message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer before we can refuse it.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return FileError(path, "open");
  struct stat info = {};
  absl::Status status;
  const uint8_t* data = nullptr;
  size_t size = 0;
  if (fstat(descriptor, &info) != 0) {
    status = FileError(path, "stat");
  } else if (!S_ISREG(info.st_mode)) {
    status = absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  } else if (info.st_size > 0) {
    size = static_cast<size_t>(info.st_size);
    void* mapping = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapping == MAP_FAILED) {
      status = FileError(path, "map");
    } else {
      data = static_cast<const uint8_t*>(mapping);
    }
  }
  close(descriptor);
  if (!status.ok()) return status;
  return std::unique_ptr<MappedFile>(new MappedFile(path, data, size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
}

void MappedFile::WillNeed(size_t offset, size_t length) const {
  if (data_ == nullptr || offset >= size_) return;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page * page;
  const size_t end = std::min(size_, offset + std::min(length, size_ - offset));
  madvise(const_cast<uint8_t*>(data_) + begin, end - begin, MADV_WILLNEED);
}

}  // namespace weft
