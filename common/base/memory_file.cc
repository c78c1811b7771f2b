#include "common/base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// Of newer kernels than the headers here; some systems refuse files without it.
constexpr unsigned int kNoExecution = 0x0008;

int MakeFile(const std::string& name) {
  const int made = memfd_create(name.c_str(), MFD_CLOEXEC | kNoExecution);
  if (made >= 0 || errno != EINVAL) return made;
  return memfd_create(name.c_str(), MFD_CLOEXEC);
}

bool WriteAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryFile>> MemoryFile::Create(const char* name,
                                                               std::string_view text) {
  std::unique_ptr<MemoryFile> file(new MemoryFile(name));
  RETURN_IF_ERROR(file->Replace(text));
  const int again = open(file->path().c_str(), O_RDONLY | O_CLOEXEC);
  if (again < 0) {
    const absl::Status why = absl::ErrnoToStatus(errno, file->path());
    return absl::FailedPreconditionError(
        absl::StrCat("cannot open files in memory: is /proc mounted? (", why.message(), ")"));
  }
  close(again);
  return file;
}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string MemoryFile::path() const { return absl::StrCat("/proc/self/fd/", descriptor_); }

absl::Status MemoryFile::Replace(std::string_view text) {
  const int made = MakeFile(name_);
  if (made < 0) return absl::ErrnoToStatus(errno, "cannot make a file in memory");
  const timespec time = {.tv_sec = replaced_ + 1, .tv_nsec = 0};
  const timespec times[2] = {time, time};
  bool done = WriteAll(made, text) && futimens(made, times) == 0;
  if (done && descriptor_ < 0) {
    descriptor_ = made;
    ++replaced_;
    return absl::OkStatus();
  }
  done = done && dup3(made, descriptor_, O_CLOEXEC) >= 0;
  const int error = errno;
  close(made);
  if (!done) return absl::ErrnoToStatus(error, "cannot write a file in memory");
  ++replaced_;
  return absl::OkStatus();
}

}  // namespace weft
