#include "common/transport/payload_pool.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

int64_t Capacity(const Payload& payload) { return static_cast<int64_t>(payload.capacity()); }

}  // namespace

Payload PayloadPool::Take(int64_t bytes) {
  Payload payload;
  if (bytes >= kSmallestBytes) {
    MutexLock lock(mutex_);
    // The smallest that is large enough, unless most of it would lie idle.
    auto best = held_.end();
    for (auto one = held_.begin(); one != held_.end(); ++one) {
      if (Capacity(*one) < bytes || Capacity(*one) / 4 > bytes) continue;
      if (best == held_.end() || Capacity(*one) < Capacity(*best)) best = one;
    }
    if (best != held_.end()) {
      held_bytes_ -= Capacity(*best);
      payload = std::move(*best);
      *best = std::move(held_.back());
      held_.pop_back();
    }
  }
  payload.resize(bytes);
  return payload;
}

void PayloadPool::Give(Payload payload) {
  const int64_t bytes = Capacity(payload);
  if (bytes < kSmallestBytes || bytes > capacity_bytes_) return;
  std::vector<Payload> dropped;  // freed outside the lock
  MutexLock lock(mutex_);
  // What lay here longest goes first, so that sizes of the past do not stay.
  while (held_bytes_ + bytes > capacity_bytes_) {
    held_bytes_ -= Capacity(held_.front());
    dropped.push_back(std::move(held_.front()));
    held_.erase(held_.begin());
  }
  held_bytes_ += bytes;
  held_.push_back(std::move(payload));
}

int64_t PayloadPool::held_bytes() const {
  MutexLock lock(mutex_);
  return held_bytes_;
}

}  // namespace weft
