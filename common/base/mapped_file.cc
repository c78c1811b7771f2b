#include "common/base/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr size_t kTouchBytes = size_t{8} << 20;
constexpr size_t kTouchStep = 4096;  // no page is smaller

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

absl::Status MappedFile::Touch(size_t offset, size_t length,
                               absl::FunctionRef<absl::Status(int64_t bytes)> read) const {
  if (offset > size_ || length > size_ - offset) {
    return absl::OutOfRangeError(
        absl::StrCat(path_, ": ", length, " bytes at ", offset, " of ", size_));
  }
  WillNeed(offset, length);
  for (size_t done = 0; done < length;) {
    const size_t piece = std::min(kTouchBytes, length - done);
    const uint8_t* const begin = data_ + offset + done;
    for (size_t i = 0; i < piece; i += kTouchStep) {
      (void)*const_cast<const volatile uint8_t*>(begin + i);
    }
    RETURN_IF_ERROR(read(static_cast<int64_t>(piece)));
    done += piece;
  }
  return absl::OkStatus();
}

}  // namespace weft
