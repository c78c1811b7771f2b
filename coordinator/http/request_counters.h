// How many requests came, by route and outcome.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "common/base/mutex.h"

namespace weft {

// Any thread. Routes come from a fixed table, so that clients cannot make more rows.
class RequestCounters {
 public:
  void Count(const std::string& route, int status);
  std::map<std::pair<std::string, int>, int64_t> counts() const;

  void AddConnections(int change) { connections_.fetch_add(change, std::memory_order_relaxed); }
  int64_t connections() const { return connections_.load(std::memory_order_relaxed); }

 private:
  mutable Mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> counts_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> connections_ = 0;
};

}  // namespace weft
