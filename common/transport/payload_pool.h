// Memory of large payloads, kept for the next ones: fresh pages cost more than the copy into them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/transport/message.h"

namespace weft {

// Any thread may call.
class PayloadPool {
 public:
  // Payloads smaller than this are left to the allocator.
  static constexpr int64_t kSmallestBytes = 32768;

  // Keeps at most so many bytes.
  explicit PayloadPool(int64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  // A payload of that size with unset content.
  Payload Take(int64_t bytes);
  // Keeps its memory if there is room.
  void Give(Payload payload);
  int64_t held_bytes() const;

 private:
  const int64_t capacity_bytes_;
  mutable Mutex mutex_;
  std::vector<Payload> held_ ABSL_GUARDED_BY(mutex_);
  int64_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft
