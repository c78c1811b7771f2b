#include "worker/weights/buffer_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

absl::Status Unknown(int64_t handle) {
  return absl::NotFoundError(absl::StrCat("this session has no buffer ", handle));
}

}  // namespace

absl::StatusOr<int64_t> BufferTable::Add(OwnedBuffer buffer) {
  MutexLock lock(mutex_);
  if (static_cast<int64_t>(buffers_.size()) >= limit_) {
    return absl::ResourceExhaustedError(absl::StrCat("a session has at most ", limit_, " buffers"));
  }
  const int64_t handle = next_++;
  buffers_[handle] = std::move(buffer);
  return handle;
}

absl::StatusOr<OwnedBuffer> BufferTable::Find(int64_t handle) const {
  MutexLock lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return Unknown(handle);
  return found->second;
}

absl::StatusOr<OwnedBuffer> BufferTable::FindWritable(int64_t handle) const {
  ASSIGN_OR_RETURN(OwnedBuffer found, Find(handle));
  if (!found.writable) {
    return absl::FailedPreconditionError(
        absl::StrCat("buffer ", handle, " shows a file and cannot be written"));
  }
  return found;
}

absl::StatusOr<OwnedBuffer> BufferTable::Remove(int64_t handle) {
  MutexLock lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return Unknown(handle);
  OwnedBuffer buffer = std::move(found->second);
  buffers_.erase(found);
  return buffer;
}

int64_t BufferTable::bytes() const {
  MutexLock lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [handle, owned] : buffers_) {
    if (owned.writable) bytes += owned.buffer->size();
  }
  return bytes;
}

}  // namespace weft
