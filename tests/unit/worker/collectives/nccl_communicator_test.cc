// The functions of NCCL and one rank's place in a communicator, on the library of fake_nccl.cc.
#include "worker/collectives/nccl_communicator.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "worker/collectives/nccl_api.h"

namespace weft {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class Fake {
 public:
  Fake() : library_(dlopen(FAKE_NCCL, RTLD_NOW | RTLD_LOCAL)) {}
  ~Fake() { Function<void()>("fake_nccl_reset")(); }
  void Script(const char* function, int result) {
    Function<void(const char*, int)>("fake_nccl_script")(function, result);
  }
  int Count(const char* name) { return Function<int()>(name)(); }

 private:
  template <typename F>
  F* Function(const char* name) {
    return reinterpret_cast<F*>(dlsym(library_, name));
  }

  void* library_;
};

// --- The library ---

TEST(NcclApiTest, Load_Finds_AllFunctions) {
  const auto api = NcclApi::Load(FAKE_NCCL);
  ASSERT_TRUE(api.ok()) << api.status();
  EXPECT_EQ((*api)->description(), "NCCL 2.28.9");
}

TEST(NcclApiTest, Load_Says_WhatIsMissing) {
  const absl::Status none = NcclApi::Load("libno-such-nccl.so.2").status();
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr("libno-such-nccl.so.2"));
  const absl::Status other = NcclApi::Load(FAKE_NCCL_WITHOUT_CONFIG_FILE).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  EXPECT_THAT(std::string(other.message()), HasSubstr("has no ncclCommInitRankConfig"));
  const absl::Status old = NcclApi::Load(FAKE_NCCL_OLD).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(old)) << old;
  EXPECT_THAT(std::string(old.message()), HasSubstr("NCCL 2.13.4; 2.14.0 is needed"));
}

// --- Ranks ---

class NcclCommunicatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto api = NcclApi::Load(FAKE_NCCL);
    ASSERT_TRUE(api.ok()) << api.status();
    api_ = *api;
    id_ = NcclCommunicator::MakeId(*api_).value();
  }
  Clock::TimePoint In(milliseconds time) const { return clock_.Now() + time; }

  // Runs `each` on a thread per rank, all joined; returns what the ranks returned.
  std::vector<absl::Status> OnRanks(
      int ranks, const std::function<absl::Status(NcclCommunicator&, int)>& each) {
    std::vector<absl::Status> results(static_cast<size_t>(ranks));
    std::vector<std::unique_ptr<NcclCommunicator>> joined(static_cast<size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        auto comm = NcclCommunicator::Join(api_, {id_, rank, ranks}, In(seconds(60)), clock_);
        if (!comm.ok()) {
          results[rank] = comm.status();
          return;
        }
        joined[rank] = *std::move(comm);
        results[rank] = each(*joined[rank], rank);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  const SystemClock clock_;
  std::shared_ptr<const NcclApi> api_;
  NcclUniqueId id_;
  Fake fake_;
};

void ExpectOk(const std::vector<absl::Status>& results) {
  for (const absl::Status& status : results) EXPECT_TRUE(status.ok()) << status;
}

TEST_F(NcclCommunicatorTest, AllReduce_Sums_OverRanks) {
  std::vector<std::vector<float>> values = {{1, 2}, {10, 20}, {100, 200}};
  ExpectOk(OnRanks(3, [&](NcclCommunicator& comm, int rank) {
    float* data = values[rank].data();
    return comm.AllReduce(data, data, 2, DType::kF32, nullptr, In(seconds(60)));
  }));
  for (const auto& result : values) EXPECT_EQ(result, (std::vector<float>{111, 222}));
  EXPECT_GE(fake_.Count("fake_nccl_destroyed"), 3);
}

// Rank r of `counts` has counts[r] values, of which the first is r * 10.
std::vector<float> PartOf(const std::vector<int64_t>& counts, int rank) {
  std::vector<float> part(static_cast<size_t>(counts[rank]));
  std::iota(part.begin(), part.end(), static_cast<float>(10 * rank));
  return part;
}

TEST_F(NcclCommunicatorTest, AllGather_TakesParts_EqualOrNot) {
  for (const std::vector<int64_t>& counts : {std::vector<int64_t>{2, 2, 2}, {3, 0, 1}}) {
    id_ = NcclCommunicator::MakeId(*api_).value();
    std::vector<float> want;
    for (int rank = 0; rank < 3; ++rank) {
      for (const float value : PartOf(counts, rank)) want.push_back(value);
    }
    std::vector<std::vector<float>> got(3, std::vector<float>(want.size(), -1));
    std::vector<std::vector<float>> parts = {PartOf(counts, 0), PartOf(counts, 1),
                                             PartOf(counts, 2)};
    ExpectOk(OnRanks(3, [&](NcclCommunicator& comm, int rank) {
      return comm.AllGather(parts[rank].data(), got[rank].data(), counts, DType::kF32, nullptr,
                            In(seconds(60)));
    }));
    for (const auto& result : got) EXPECT_EQ(result, want);
  }
}

TEST_F(NcclCommunicatorTest, ReduceScatter_GivesEachItsShare_EqualOrNot) {
  for (const std::vector<int64_t>& counts : {std::vector<int64_t>{2, 2}, {1, 3}}) {
    id_ = NcclCommunicator::MakeId(*api_).value();
    const std::vector<std::vector<float>> values = {{1, 2, 3, 4}, {10, 20, 30, 40}};
    std::vector<std::vector<float>> got(2, std::vector<float>(4, -1));
    ExpectOk(OnRanks(2, [&](NcclCommunicator& comm, int rank) {
      return comm.ReduceScatter(values[rank].data(), got[rank].data(), counts, DType::kF32, nullptr,
                                In(seconds(60)));
    }));
    const std::vector<float> sum = {11, 22, 33, 44};
    for (int rank = 0, at = 0; rank < 2; at += static_cast<int>(counts[rank]), ++rank) {
      const std::vector<float> want(sum.begin() + at, sum.begin() + at + counts[rank]);
      got[rank].resize(static_cast<size_t>(counts[rank]));
      EXPECT_EQ(got[rank], want);
    }
  }
}

TEST_F(NcclCommunicatorTest, Broadcast_TakesTheRoots) {
  std::vector<std::vector<float>> values = {{1, 2}, {3, 4}};
  ExpectOk(OnRanks(2, [&](NcclCommunicator& comm, int rank) {
    float* data = values[rank].data();
    return comm.Broadcast(data, data, 2, DType::kF32, 1, nullptr, In(seconds(60)));
  }));
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(values[0], (std::vector<float>{3, 4}));
}

TEST_F(NcclCommunicatorTest, Calls_Refuse_WhatCannotBe) {
  float x = 0;
  const auto deadline = In(seconds(60));
  ExpectOk(OnRanks(1, [&](NcclCommunicator& comm, int) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(comm.AllReduce(&x, &x, 1, DType::kQ8_0, nullptr, deadline)));
    EXPECT_TRUE(
        absl::IsInvalidArgument(comm.AllReduce(&x, &x, -1, DType::kF32, nullptr, deadline)));
    EXPECT_TRUE(
        absl::IsInvalidArgument(comm.AllGather(&x, &x, {1, 1}, DType::kF32, nullptr, deadline)));
    EXPECT_TRUE(
        absl::IsInvalidArgument(comm.Broadcast(&x, &x, 1, DType::kF32, 1, nullptr, deadline)));
    return comm.AllReduce(&x, &x, 1, DType::kF32, nullptr, deadline);
  }));
  EXPECT_TRUE(absl::IsInvalidArgument(
      NcclCommunicator::Join(api_, {id_, 2, 2}, deadline, clock_).status()));
}

// --- What goes wrong ---

TEST_F(NcclCommunicatorTest, Join_GivesUp_WhereARankStaysAway) {
  const int aborts = fake_.Count("fake_nccl_aborts");
  const absl::Status status =
      NcclCommunicator::Join(api_, {id_, 0, 2}, In(milliseconds(20)), clock_).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("other ranks of rank 0"));
  EXPECT_EQ(fake_.Count("fake_nccl_aborts"), aborts + 1);
}

TEST_F(NcclCommunicatorTest, Errors_Name_TheCall) {
  fake_.Script("ncclAllReduce", 3);
  fake_.Script("ncclGroupEnd", 6);
  float x = 0;
  const std::vector<absl::Status> results = OnRanks(1, [&](NcclCommunicator& comm, int) {
    return comm.AllReduce(&x, &x, 1, DType::kF32, nullptr, In(seconds(60)));
  });
  EXPECT_TRUE(absl::IsInternal(results[0])) << results[0];
  EXPECT_THAT(std::string(results[0].message()),
              HasSubstr("ncclAllReduce: bad (3 of NCCL 2.28.9)"));
  id_ = NcclCommunicator::MakeId(*api_).value();
  float two[3] = {};
  const std::vector<absl::Status> grouped = OnRanks(2, [&](NcclCommunicator& comm, int rank) {
    return comm.AllGather(&two[rank], two, {1, 2}, DType::kF32, nullptr, In(seconds(60)));
  });
  for (const absl::Status& status : grouped) EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_F(NcclCommunicatorTest, Abort_FreesOne_AndTheOthersLearnOfIt) {
  fake_.Script("ncclAllReduce", 7);  // under way
  fake_.Script("ncclCommGetAsyncError", 0);
  std::vector<std::unique_ptr<NcclCommunicator>> joined(2);
  {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        joined[rank] =
            NcclCommunicator::Join(api_, {id_, rank, 2}, In(seconds(60)), clock_).value();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  fake_.Script("ncclCommGetAsyncError", 7);  // for ever
  float x = 0;
  absl::Status waited;
  std::thread waiting(
      [&] { waited = joined[0]->AllReduce(&x, &x, 1, DType::kF32, nullptr, In(seconds(60))); });
  joined[0]->Abort();
  waiting.join();
  EXPECT_TRUE(absl::IsCancelled(waited)) << waited;
  EXPECT_TRUE(absl::IsCancelled(joined[0]->Check()));
  const absl::Status other = joined[1]->Check();
  EXPECT_TRUE(absl::IsUnavailable(other)) << other;
  EXPECT_THAT(std::string(other.message()), HasSubstr("remote process exited"));
}

}  // namespace
}  // namespace weft
