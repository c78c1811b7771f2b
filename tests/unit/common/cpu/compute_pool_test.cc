#include "common/cpu/compute_pool.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(ComputePoolTest, Create_BadNumberOfThreads_IsAnError) {
  for (const int threads : {-1, 0, ComputePool::kMaxThreads + 1}) {
    EXPECT_THAT(ComputePool::Create(threads),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("threads")));
  }
}

TEST(ComputePoolTest, Run_EveryWorkerOnce_OnItsOwnThread) {
  for (const int threads : {1, 2, 3, 16}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ComputePool> pool, ComputePool::Create(threads));
    std::vector<std::thread::id> ids(static_cast<size_t>(threads));
    std::vector<int> calls(static_cast<size_t>(threads), 0);
    pool->Run([&](int worker) {
      ids[static_cast<size_t>(worker)] = std::this_thread::get_id();
      ++calls[static_cast<size_t>(worker)];
    });
    EXPECT_EQ(calls, std::vector<int>(static_cast<size_t>(threads), 1));
    EXPECT_EQ(ids[0], std::this_thread::get_id());
    for (size_t i = 1; i < ids.size(); ++i) EXPECT_NE(ids[i], ids[0]);
  }
}

// Plain memory, so the thread sanitizer sees a missing order between tasks, and between a task and
// the caller.
TEST(ComputePoolTest, Run_ManyTasks_SeeEachOthersWrites) {
  constexpr int kThreads = 4;
  constexpr int kTasks = 2000;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ComputePool> pool, ComputePool::Create(kThreads));
  std::vector<int64_t> values(kThreads, 0);
  for (int task = 0; task < kTasks; ++task) {
    pool->Run([&](int worker) {
      // Reads and writes the value that another worker wrote in the task before.
      ++values[static_cast<size_t>((worker + task) % kThreads)];
    });
    if (task % 100 == 0) values[0] += 1000;  // the caller's write between tasks
  }
  int64_t sum = 0;
  for (const int64_t value : values) sum += value;
  EXPECT_EQ(sum, int64_t{kThreads} * kTasks + kTasks / 100 * 1000);
}

// Workers that had to go to sleep wake up again, and so does the caller.
TEST(ComputePoolTest, Run_AfterEveryoneSlept_StillFinishes) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ComputePool> pool, ComputePool::Create(3));
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> released{false};
    std::atomic<int> finished{0};
    std::atomic<int> idle_calls{0};
    pool->Run(
        [&](int worker) {
          // The others run until the caller, who waits for them, has been idle a few times: it
          // must have stopped spinning by then.
          while (worker != 0 && !released.load()) std::this_thread::yield();
          ++finished;
        },
        [&] {
          if (++idle_calls == 3) released.store(true);
        });
    EXPECT_EQ(finished.load(), 3);
    EXPECT_GE(idle_calls.load(), 3);
    // Long enough for the workers to sleep, by work instead of time.
    std::atomic<int64_t> busy{0};
    while (++busy < 200000) {
    }
  }
}

TEST(ComputePoolTest, Run_MoreThreadsThanCores_Finishes) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ComputePool> pool, ComputePool::Create(48));
  std::atomic<int> calls{0};
  for (int task = 0; task < 50; ++task) pool->Run([&](int) { ++calls; });
  EXPECT_EQ(calls.load(), 48 * 50);
}

TEST(ComputePoolTest, Destructor_WithoutWork_Joins) {
  for (int i = 0; i < 20; ++i) ASSERT_OK(ComputePool::Create(1 + i % 5));
}

}  // namespace
}  // namespace weft
