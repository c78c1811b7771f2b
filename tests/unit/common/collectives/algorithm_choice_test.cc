#include "common/collectives/algorithm_choice.h"

#include <numeric>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

using enum CollectiveAlgorithm;

const std::vector<int32_t> kFourOnOneHost = {0, 0, 0, 0};
const std::vector<int32_t> kTwoHostsOfTwo = {0, 0, 1, 1};

TEST(AlgorithmChoice, SmallByDoubling_LargeByParts) {
  const LinkModels links;
  EXPECT_EQ(ChooseAllReduce(1024, kFourOnOneHost, DType::kF32, links), kRecursiveDoubling);
  EXPECT_EQ(ChooseAllReduce(1 << 22, kFourOnOneHost, DType::kF32, links), kByParts);
  EXPECT_EQ(ChooseAllReduce(1, {0}, DType::kF32, links), kRecursiveDoubling);
}

TEST(AlgorithmChoice, SlowNetwork_HostsFirst) {
  const LinkModels links{{5, 8e9}, {1000, 1e8}};
  const CollectiveAlgorithm small = ChooseAllReduce(1024, kTwoHostsOfTwo, DType::kF32, links);
  const CollectiveAlgorithm large = ChooseAllReduce(1 << 22, kTwoHostsOfTwo, DType::kF32, links);
  EXPECT_TRUE(small == kRecursiveDoubling || small == kHostsFirstRecursiveDoubling);
  EXPECT_EQ(large, kHostsFirstByParts);
}

// A narrower wire moves the point from which parts pay.
TEST(AlgorithmChoice, CountsBytesOnTheWire) {
  const LinkModels links;
  int64_t elements = 32;
  while (ChooseAllReduce(elements, kFourOnOneHost, DType::kF32, links) == kRecursiveDoubling) {
    elements *= 2;
  }
  EXPECT_EQ(ChooseAllReduce(elements, kFourOnOneHost, DType::kQ8_0, links), kRecursiveDoubling);
}

// Latency decides small sums, bytes large ones, and the number of ranks where the border lies.
TEST(AlgorithmChoice, FollowsTheLink) {
  const std::vector<int32_t> four = {0, 1, 2, 3};
  const std::vector<int32_t> two = {0, 1};
  const LinkModels far{{}, {1000, 1e10}};
  const LinkModels narrow{{}, {1, 1e6}};
  for (const int64_t elements : {1, 2048, 100000}) {
    EXPECT_EQ(ChooseAllReduce(elements, four, DType::kF32, far), kRecursiveDoubling);
    // Two ranks save no bytes by parts.
    EXPECT_EQ(ChooseAllReduce(elements, two, DType::kF32, narrow), kRecursiveDoubling);
  }
  EXPECT_EQ(ChooseAllReduce(2048, four, DType::kF32, narrow), kByParts);
  // Both twice as slow: the same choice, twice the time.
  const LinkModels slow{{}, {2000, 5e9}};
  for (int64_t elements = 1; elements < (1 << 26); elements *= 3) {
    EXPECT_EQ(ChooseAllReduce(elements, four, DType::kF32, far),
              ChooseAllReduce(elements, four, DType::kF32, slow));
    EXPECT_NEAR(PredictAllReduce(elements, four, DType::kF32, far)[0].microseconds * 2,
                PredictAllReduce(elements, four, DType::kF32, slow)[0].microseconds, 1e-6);
  }
}

// Once parts pay, they pay for everything larger: there is one border.
TEST(AlgorithmChoice, OneBorderForAnyRanks) {
  for (int32_t ranks = 1; ranks <= 17; ++ranks) {
    std::vector<int32_t> hosts(static_cast<size_t>(ranks));
    std::iota(hosts.begin(), hosts.end(), 0);
    bool parts = false;
    for (int64_t elements = 32 * ranks; elements < (1 << 24); elements *= 2) {
      const bool now = ChooseAllReduce(elements, hosts, DType::kF32, {}) == kByParts;
      EXPECT_TRUE(now || !parts) << ranks << " ranks, " << elements << " elements";
      parts = now;
    }
    EXPECT_EQ(parts, ranks > 2) << ranks;
  }
}

TEST(AlgorithmChoice, Policies_LeaveTheirAlgorithms) {
  const LinkModels links{{5, 8e9}, {1000, 1e8}};
  for (const int64_t elements : {1, 1 << 22}) {
    for (const std::vector<int32_t>& hosts : {kFourOnOneHost, kTwoHostsOfTwo}) {
      const CollectiveAlgorithm doubling =
          ChooseAllReduce(elements, hosts, DType::kF32, links, AllReducePolicy::kDoubling);
      EXPECT_TRUE(doubling == kRecursiveDoubling || doubling == kHostsFirstRecursiveDoubling);
      const CollectiveAlgorithm parts =
          ChooseAllReduce(elements, hosts, DType::kF32, links, AllReducePolicy::kByParts);
      EXPECT_TRUE(parts == kByParts || parts == kHostsFirstByParts);
    }
  }
  for (const auto& [hosts, count] : {std::pair(kTwoHostsOfTwo, 4), std::pair(kFourOnOneHost, 2),
                                     std::pair(std::vector<int32_t>{0, 1}, 2)}) {
    const auto predictions = [&](AllReducePolicy policy) {
      return static_cast<int>(PredictAllReduce(1, hosts, DType::kF32, links, policy).size());
    };
    EXPECT_EQ(predictions(AllReducePolicy::kAuto), count);
    EXPECT_EQ(predictions(AllReducePolicy::kByParts), count / 2);
    EXPECT_EQ(predictions(AllReducePolicy::kDoubling), count / 2);
  }
}

TEST(AlgorithmChoice, Prediction_IsLatencyAndBytes) {
  ScheduleCost cost;
  cost.steps = 3;
  cost.messages = 3;
  cost.elements = 1000;
  cost.outer_steps = 1;
  cost.outer_messages = 1;
  cost.outer_elements = 400;
  const LinkModels links{{2, 1e9}, {50, 1e8}};
  // 2 steps of 2 us and 2400 bytes at 1 GB/s, one of 50 us and 1600 bytes at 100 MB/s.
  EXPECT_NEAR(PredictMicroseconds(cost, DType::kF32, links), 4 + 2.4 + 50 + 16, 1e-9);
}

}  // namespace
}  // namespace weft
