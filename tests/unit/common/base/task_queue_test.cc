#include "common/base/task_queue.h"

#include <atomic>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(TaskQueue, AwaitAll_EverythingHasRunOnce) {
  for (const int threads : {0, 1, 3}) {
    TaskQueue queue(threads, 2);
    std::atomic<int> runs = 0;
    for (int round = 1; round <= 3; ++round) {
      for (int i = 0; i < 50; ++i) queue.Add([&] { ++runs; });
      queue.AwaitAll();
      EXPECT_EQ(runs.load(), 50 * round) << threads;
    }
  }
}

TEST(TaskQueue, End_WaitsForWhatWasAdded) {
  std::atomic<int> runs = 0;
  {
    TaskQueue queue(2, 100);
    for (int i = 0; i < 50; ++i) queue.Add([&] { ++runs; });
  }
  EXPECT_EQ(runs.load(), 50);
}

}  // namespace
}  // namespace weft
