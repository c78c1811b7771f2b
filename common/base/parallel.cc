#include "common/base/parallel.h"

#include <thread>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace weft {

absl::Status RunParallel(size_t count, const std::function<absl::Status(size_t)>& work) {
  std::vector<absl::Status> results(count);
  std::vector<std::thread> threads;
  for (size_t i = 1; i < count; ++i) {
    absl::StatusOr<std::thread> thread = StartThread([&, i] { results[i] = work(i); });
    if (thread.ok()) {
      threads.push_back(*std::move(thread));
    } else {
      results[i] = thread.status();
    }
  }
  if (count > 0) results[0] = work(0);
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

}  // namespace weft
