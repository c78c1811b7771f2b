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

TEST(ComputePoolTest, Run_EveryPieceOnce_OneAtATimePerWorker) {
  for (const int threads : {1, 2, 3, 16}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ComputePool> pool, ComputePool::Create(threads));
    for (const int64_t pieces : {0, 1, 2, 5, 100}) {
      std::vector<int> calls(static_cast<size_t>(pieces), 0);
      std::vector<std::thread::id> ids(static_cast<size_t>(threads));
      std::vector<std::atomic<int>> inside(static_cast<size_t>(threads));
      pool->Run(pieces, [&](int64_t piece, int worker) {
        const auto w = static_cast<size_t>(worker);
        EXPECT_EQ(inside[w].fetch_add(1), 0);
        EXPECT_TRUE(ids[w] == std::thread::id() || ids[w] == std::this_thread::get_id());
        ids[w] = std::this_thread::get_id();
        ++calls[static_cast<size_t>(piece)];
        inside[w].fetch_sub(1);
      });
      EXPECT_EQ(calls, std::vector<int>(static_cast<size_t>(pieces), 1));
      EXPECT_TRUE(ids[0] == std::thread::id() || ids[0] == std::this_thread::get_id());
    }
  }
}

// A worker that is held up keeps only the piece it has begun.
TEST(ComputePoolTest, Run_OneWorkerHeldUp_OthersDoItsPieces) {
  constexpr int64_t kPieces = 40;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ComputePool> pool, ComputePool::Create(2));
  for (int round = 0; round < 20; ++round) {
    std::atomic<int64_t> done{0};
    pool->Run(kPieces, [&](int64_t, int worker) {
      // Worker 1 does not finish its first piece before all others are done.
      while (worker == 1 && done.load() < kPieces - 1) std::this_thread::yield();
      ++done;
    });
    EXPECT_EQ(done.load(), kPieces);
  }
}

// Plain memory, so the thread sanitizer sees a missing order between tasks, and between a task and
// the caller.
TEST(ComputePoolTest, Run_ManyTasks_SeeEachOthersWrites) {
  constexpr int64_t kPieces = 8;
  constexpr int kTasks = 2000;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ComputePool> pool, ComputePool::Create(4));
  std::vector<int64_t> values(kPieces, 0);
  for (int task = 0; task < kTasks; ++task) {
    // Pieces change hands between tasks.
    pool->Run(kPieces,
              [&](int64_t piece, int) { ++values[static_cast<size_t>((piece + task) % kPieces)]; });
    if (task % 100 == 0) values[0] += 1000;  // the caller's write between tasks
  }
  int64_t sum = 0;
  for (const int64_t value : values) sum += value;
  EXPECT_EQ(sum, kPieces * kTasks + kTasks / 100 * 1000);
}

// A caller who waits for a long piece of another sleeps, and calls idle meanwhile.
TEST(ComputePoolTest, Run_LongPieceOfAnother_CallerIsIdleAndWakes) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ComputePool> pool, ComputePool::Create(2));
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> other_began{false};
    std::atomic<int> idle_calls{0};
    pool->Run(
        2,
        [&](int64_t, int worker) {
          // Each worker does one piece: the caller's ends when the other has begun.
          if (worker == 0) {
            while (!other_began.load()) std::this_thread::yield();
          } else {
            other_began.store(true);
            while (idle_calls.load() < 3) std::this_thread::yield();
          }
        },
        [&] { ++idle_calls; });
    EXPECT_GE(idle_calls.load(), 3);
  }
}

TEST(ComputePoolTest, Run_MoreThreadsThanCores_Finishes) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ComputePool> pool, ComputePool::Create(48));
  std::atomic<int> calls{0};
  for (int task = 0; task < 50; ++task) pool->Run(100, [&](int64_t, int) { ++calls; });
  EXPECT_EQ(calls.load(), 100 * 50);
}

TEST(ComputePoolTest, Destructor_WithoutWork_Joins) {
  for (int i = 0; i < 20; ++i) ASSERT_OK(ComputePool::Create(1 + i % 5));
}

}  // namespace
}  // namespace weft
