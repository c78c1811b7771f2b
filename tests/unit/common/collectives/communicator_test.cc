// Ranks that are threads of this process.
#include "common/collectives/communicator.h"

#include <sys/resource.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "common/base/random.h"
#include "common/collectives/local_exchange.h"
#include "common/collectives/wire_format.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Vectors = std::vector<std::vector<float>>;

Clock::TimePoint In(std::chrono::milliseconds time) { return SystemClock().Now() + time; }
constexpr std::chrono::milliseconds kLong{60000};

class Group {
 public:
  explicit Group(const std::vector<int32_t>& hosts)
      : exchange_(static_cast<int32_t>(hosts.size())), size_(hosts.size()) {
    for (size_t r = 0; r < size_; ++r) {
      links_.push_back(std::make_unique<LocalLink>(exchange_, static_cast<int32_t>(r)));
      ranks_.push_back(
          std::make_unique<ScheduledCommunicator>(static_cast<int32_t>(r), hosts, *links_.back()));
    }
  }

  // work(rank) on a thread for each rank but those that stay away.
  std::vector<absl::Status> Run(const std::function<absl::Status(Communicator&)>& work,
                                int absent = -1) {
    std::vector<absl::Status> statuses(size_);
    std::vector<std::thread> threads;
    for (size_t r = 0; r < size_; ++r) {
      if (static_cast<int>(r) == absent) continue;
      threads.emplace_back([&, r] { statuses[r] = work(*ranks_[r]); });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }
  void ExpectOk(const std::function<absl::Status(Communicator&)>& work) {
    for (const absl::Status& status : Run(work)) EXPECT_OK(status);
  }
  LocalExchange& exchange() { return exchange_; }

 private:
  LocalExchange exchange_;
  const size_t size_;
  std::vector<std::unique_ptr<LocalLink>> links_;
  std::vector<std::unique_ptr<ScheduledCommunicator>> ranks_;
};

Vectors RandomVectors(Random& random, size_t ranks, int64_t elements) {
  Vectors vectors(ranks, std::vector<float>(static_cast<size_t>(elements)));
  for (std::vector<float>& vector : vectors) {
    for (float& value : vector) value = static_cast<float>(random.Normal());
  }
  return vectors;
}

void ExpectSameBits(const Vectors& vectors) {
  for (const std::vector<float>& vector : vectors) {
    ASSERT_EQ(std::memcmp(vector.data(), vectors[0].data(), vector.size() * 4), 0);
  }
}

CollectiveCall Call(int64_t step, Clock::TimePoint deadline = In(kLong)) {
  return {.step = step, .id = 3, .deadline = deadline};
}

TEST(Communicator, AllReduce_EveryWireAndAlgorithm_SumWithEqualBits) {
  const uint64_t seed = TestSeed(1);
  for (const size_t ranks : {1, 2, 3, 5, 8}) {
    Random random(seed + ranks);
    std::vector<int32_t> hosts(ranks);
    for (size_t r = 0; r < ranks; ++r) hosts[r] = static_cast<int32_t>(r / 2);
    Group group(hosts);
    int64_t step = 0;
    for (const DType wire : {DType::kF32, DType::kBF16, DType::kQ8_0}) {
      for (int a = 0; a < kCollectiveAlgorithmCount; ++a) {
        for (const int64_t elements : {0, 7, 300, 5000}) {
          const Vectors inputs = RandomVectors(random, ranks, elements);
          Vectors vectors = inputs;
          ++step;
          group.ExpectOk([&](Communicator& own) {
            return own.AllReduce(absl::MakeSpan(vectors[own.rank()]),
                                 static_cast<CollectiveAlgorithm>(a), wire, Call(step));
          });
          ExpectSameBits(vectors);
          const double tolerance = wire == DType::kF32 ? 1e-5 : wire == DType::kBF16 ? 0.1 : 0.2;
          for (int64_t e = 0; e < elements; ++e) {
            double sum = 0;
            for (const std::vector<float>& input : inputs) sum += input[e];
            ASSERT_NEAR(vectors[0][e], sum, tolerance) << "element " << e;
          }
        }
      }
    }
  }
}

// Ranks that come in another order or late do not change a bit.
TEST(Communicator, AllReduce_Again_SameBits) {
  Random random(TestSeed(1));
  Group group(std::vector<int32_t>(5));
  const Vectors inputs = RandomVectors(random, 5, 999);
  Vectors first;
  for (int64_t step = 1; step <= 20; ++step) {
    Vectors vectors = inputs;
    group.ExpectOk([&](Communicator& own) {
      for (int64_t i = (own.rank() * step) % 7; i > 0; --i) std::this_thread::yield();
      return own.AllReduce(absl::MakeSpan(vectors[own.rank()]), CollectiveAlgorithm::kByParts,
                           DType::kF32, Call(step));
    });
    if (step == 1) first = vectors;
    EXPECT_EQ(vectors, first);
  }
}

TEST(Communicator, GatherScatterBroadcast_ZeroAndUnevenCounts) {
  Random random(TestSeed(1));
  const std::vector<int64_t> counts = {5, 0, 64, 1};
  Group group({0, 0, 1, 1});
  const Vectors inputs = RandomVectors(random, 4, 70);
  Vectors vectors(4, std::vector<float>(70));
  int64_t begin = 0;
  std::vector<float> all;
  for (size_t r = 0; r < 4; ++r) {
    std::copy_n(inputs[r].begin(), counts[r], vectors[r].begin() + begin);
    all.insert(all.end(), inputs[r].begin(), inputs[r].begin() + counts[r]);
    begin += counts[r];
  }
  group.ExpectOk([&](Communicator& own) {
    return own.AllGather(counts, absl::MakeSpan(vectors[own.rank()]), DType::kF32, Call(1));
  });
  for (const std::vector<float>& vector : vectors) EXPECT_EQ(vector, all);

  vectors = inputs;
  group.ExpectOk([&](Communicator& own) {
    return own.ReduceScatter(counts, absl::MakeSpan(vectors[own.rank()]), DType::kF32, Call(2));
  });
  begin = 0;
  for (size_t r = 0; r < 4; ++r) {
    for (int64_t e = begin; e < begin + counts[r]; ++e) {
      EXPECT_NEAR(vectors[r][e], inputs[0][e] + inputs[1][e] + inputs[2][e] + inputs[3][e], 1e-5);
    }
    begin += counts[r];
  }

  vectors = inputs;
  group.ExpectOk([&](Communicator& own) {
    return own.Broadcast(2, absl::MakeSpan(vectors[own.rank()]), DType::kF32, Call(3));
  });
  for (const std::vector<float>& vector : vectors) EXPECT_EQ(vector, inputs[2]);
}

TEST(Communicator, AbsentRank_DeadlineNamesIt) {
  Group group(std::vector<int32_t>(3));
  Vectors vectors(3, std::vector<float>(100, 1));
  const std::vector<absl::Status> statuses = group.Run(
      [&](Communicator& own) {
        return own.AllReduce(absl::MakeSpan(vectors[own.rank()]), CollectiveAlgorithm::kByParts,
                             DType::kF32, Call(9, In(std::chrono::milliseconds(30))));
      },
      /*absent=*/1);
  for (const int rank : {0, 2}) {
    EXPECT_THAT(statuses[rank],
                StatusIs(absl::StatusCode::kDeadlineExceeded,
                         AllOf(HasSubstr("step 9, collective 3"), HasSubstr("from rank 1"))));
  }
}

TEST(Communicator, Abort_FreesEveryRankWithItsReason) {
  Group group(std::vector<int32_t>(4));
  Vectors vectors(4, std::vector<float>(100, 1));
  const std::vector<absl::Status> statuses = group.Run([&](Communicator& own) -> absl::Status {
    if (own.rank() == 3) {
      own.Abort(absl::UnavailableError("rank 3 burns"));
      return absl::OkStatus();
    }
    return own.AllReduce(absl::MakeSpan(vectors[own.rank()]),
                         CollectiveAlgorithm::kRecursiveDoubling, DType::kF32, Call(1));
  });
  for (const int rank : {0, 1, 2}) {
    EXPECT_THAT(statuses[rank],
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 3 burns")));
  }
}

TEST(Communicator, Stop_EndsTheWait) {
  Group group(std::vector<int32_t>(2));
  std::atomic<bool> stop = false;
  std::vector<float> vector(10);
  std::thread stopper([&] {
    stop = true;
    group.exchange().Wake();
  });
  const std::vector<absl::Status> statuses = group.Run(
      [&](Communicator& own) {
        CollectiveCall call = Call(1);
        call.stop = &stop;
        return own.AllReduce(absl::MakeSpan(vector), CollectiveAlgorithm::kRecursiveDoubling,
                             DType::kF32, call);
      },
      /*absent=*/1);
  stopper.join();
  EXPECT_THAT(statuses[0], StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
}

TEST(Communicator, WrongShapes_AreErrors) {
  Group group(std::vector<int32_t>(1));
  std::vector<float> vector(10);
  group.Run([&](Communicator& own) {
    const auto values = absl::MakeSpan(vector);
    EXPECT_FALSE(own.AllGather({10, 0}, values, DType::kF32, Call(1)).ok());
    EXPECT_FALSE(own.AllGather({9}, values, DType::kF32, Call(1)).ok());
    EXPECT_FALSE(own.AllGather({-1}, values, DType::kF32, Call(1)).ok());
    EXPECT_FALSE(own.Broadcast(1, values, DType::kF32, Call(1)).ok());
    EXPECT_FALSE(own.AllReduce(values, CollectiveAlgorithm::kByParts, DType::kQ4_0, Call(1)).ok());
    return absl::OkStatus();
  });
}

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Far more ranks than processors.
TEST(Communicator, SixteenRanks_ManySteps_Finish) {
  Group group(std::vector<int32_t>(16));
  Vectors vectors(16, std::vector<float>(2048, 1));
  for (int64_t step = 1; step <= 100; ++step) {
    const auto algorithm = static_cast<CollectiveAlgorithm>(step % 2);
    group.ExpectOk([&](Communicator& own) {
      std::vector<float>& own_vector = vectors[own.rank()];
      std::fill(own_vector.begin(), own_vector.end(), 1.0f);
      return own.AllReduce(absl::MakeSpan(own_vector), algorithm, DType::kF32, Call(step));
    });
    group.exchange().Retire(step);
    for (const std::vector<float>& vector : vectors) ASSERT_EQ(vector.back(), 16);
  }
}

// Who waits long sleeps: the processor time of 15 ranks that wait half a second is little.
TEST(Communicator, WaitingRanks_DoNotSpin) {
  Group group(std::vector<int32_t>(16));
  Vectors vectors(16, std::vector<float>(64, 1));
  const double before = CpuSeconds();
  group.Run(
      [&](Communicator& own) {
        return own.AllReduce(absl::MakeSpan(vectors[own.rank()]), CollectiveAlgorithm::kByParts,
                             DType::kF32, Call(1, In(std::chrono::milliseconds(500))));
      },
      /*absent=*/7);
  EXPECT_LT(CpuSeconds() - before, 0.25);
}

}  // namespace
}  // namespace weft
