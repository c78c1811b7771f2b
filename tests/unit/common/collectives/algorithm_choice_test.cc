#include "common/collectives/algorithm_choice.h"

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
