#include "coordinator/http/request_counters.h"

namespace weft {

void RequestCounters::Count(const std::string& route, int status) {
  MutexLock lock(mutex_);
  ++counts_[{route, status}];
}

std::map<std::pair<std::string, int>, int64_t> RequestCounters::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

}  // namespace weft
