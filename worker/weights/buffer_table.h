// The buffers of one session by handle. A handle is a number that this process gave out; whatever a
// peer sends is looked up here and never used as an address.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/device/device.h"

namespace weft {

// A buffer and what it keeps alive: memory that it only shows (a mapped file) must outlive it.
struct OwnedBuffer {
  std::shared_ptr<const void> memory;
  std::shared_ptr<Buffer> buffer;
  int32_t device = 0;
  bool writable = true;
};

// Thread-safe.
class BufferTable {
 public:
  // At most `limit` buffers at a time.
  explicit BufferTable(int64_t limit) : limit_(limit) {}

  // Errors: RESOURCE_EXHAUSTED.
  absl::StatusOr<int64_t> Add(OwnedBuffer buffer);
  // The buffer lives as long as the result is held. Errors: NOT_FOUND naming the handle.
  absl::StatusOr<OwnedBuffer> Find(int64_t handle) const;
  // As Find, of a buffer that may be written. Errors: also FAILED_PRECONDITION.
  absl::StatusOr<OwnedBuffer> FindWritable(int64_t handle) const;
  // Takes it out. Errors: NOT_FOUND.
  absl::StatusOr<OwnedBuffer> Remove(int64_t handle);
  // Bytes of all that are not mapped files.
  int64_t bytes() const;

 private:
  const int64_t limit_;
  mutable Mutex mutex_;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<int64_t, OwnedBuffer> buffers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
