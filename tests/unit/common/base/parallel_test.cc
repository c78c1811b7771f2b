#include "common/base/parallel.h"

#include <atomic>
#include <string>
#include <thread>

#include "tests/support/status_matchers.h"

namespace weft {
namespace {

TEST(ParallelTest, RunParallel_EachOnceAndAtTheSameTime) {
  std::atomic<int> here = 0;
  std::atomic<int> sum = 0;
  EXPECT_OK(RunParallel(5, [&](size_t i) {
    ++here;
    while (here < 5) std::this_thread::yield();  // for ever if one had to end before the next
    sum += static_cast<int>(i);
    return absl::OkStatus();
  }));
  EXPECT_EQ(sum, 10);
  EXPECT_OK(RunParallel(0, [](size_t) { return absl::InternalError("called"); }));
}

TEST(ParallelTest, RunParallel_Errors_TheLowestOneAfterAllHaveEnded) {
  std::atomic<int> ended = 0;
  const absl::Status status = RunParallel(4, [&](size_t i) {
    ++ended;
    return i == 0 ? absl::OkStatus() : absl::InternalError(std::to_string(i));
  });
  EXPECT_EQ(status.message(), "1");
  EXPECT_EQ(ended, 4);
}

}  // namespace
}  // namespace weft
