// Sums that travel rounded: how far from the exact ones, and the same bits on all ranks, for any
// number of ranks, length, algorithm and wire type.
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/random.h"
#include "common/collectives/communicator.h"
#include "common/collectives/local_exchange.h"
#include "common/collectives/wire_format.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBlock = 32;
constexpr DType kWires[] = {DType::kF32, DType::kBF16, DType::kQ8_0};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One all-reduce; `vectors` by rank, `wires` what each rank believes that they travel as.
struct Sum {
  std::vector<std::vector<float>> vectors;
  std::vector<int32_t> hosts;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRecursiveDoubling;
  std::vector<DType> wires;
  std::vector<absl::Status> statuses;
};

// Each rank on a thread of its own does its part of all sums, one after the other.
void RunSums(std::vector<Sum>& sums, std::chrono::milliseconds time = std::chrono::seconds(60)) {
  const size_t ranks = sums[0].vectors.size();
  LocalExchange exchange(static_cast<int32_t>(ranks));
  const Clock::TimePoint deadline = SystemClock().Now() + time;
  std::vector<std::thread> threads;
  for (Sum& sum : sums) sum.statuses.resize(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const auto rank = static_cast<int32_t>(r);
      LocalLink link(exchange, rank);
      for (size_t s = 0; s < sums.size(); ++s) {
        Sum& sum = sums[s];
        ScheduledCommunicator own(rank, sum.hosts, link);
        sum.statuses[r] =
            own.AllReduce(absl::MakeSpan(sum.vectors[r]), sum.algorithm, sum.wires[r],
                          {.step = static_cast<int64_t>(s) + 1, .id = 3, .deadline = deadline});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Sum RandomSum(Random& random, size_t ranks, size_t elements, DType wire) {
  Sum sum;
  sum.wires.assign(ranks, wire);
  for (size_t r = 0; r < ranks; ++r) {
    sum.hosts.push_back(static_cast<int32_t>(random.Between(0, static_cast<int64_t>(ranks) / 3)));
    std::vector<float>& vector = sum.vectors.emplace_back(elements);
    // Above the subnormal scales of Q8_0, which are coarser.
    const double scale = std::exp2(static_cast<double>(random.Between(-4, 12)));
    for (float& value : vector) value = static_cast<float>(random.Normal() * scale);
  }
  sum.algorithm =
      static_cast<CollectiveAlgorithm>(random.Between(0, kCollectiveAlgorithmCount - 1));
  return sum;
}

// The most by which rounding a value moves it, as a share of the largest in its block: BF16 has
// eight bits; of Q8_0 half a code, and a scale of eleven bits.
double ShareOf(DType wire) {
  if (wire == DType::kF32) return std::exp2(-23);
  return wire == DType::kBF16 ? std::exp2(-8) : 1.0 / 254 + std::exp2(-11);
}

// A value is rounded once on each way to a partner and once on the way back: at most this often.
int MostRoundings(size_t ranks) { return std::bit_width(ranks) + 3; }

std::string Text(const Sum& sum) {
  return absl::StrCat(sum.vectors.size(), " ranks, ", sum.vectors[0].size(), " elements, ",
                      AbslView(CollectiveAlgorithmName(sum.algorithm)), ", ",
                      AbslView(DTypeName(sum.wires[0])));
}

void ExpectSameBits(const Sum& sum) {
  for (const std::vector<float>& vector : sum.vectors) {
    ASSERT_EQ(std::memcmp(vector.data(), sum.vectors[0].data(), vector.size() * sizeof(float)), 0);
  }
}

// Within what the roundings of the addends and of their partial sums allow.
void ExpectNearExact(const Sum& sum, const std::vector<std::vector<float>>& inputs) {
  const size_t elements = inputs[0].size();
  const double share = ShareOf(sum.wires[0]);
  for (size_t begin = 0; begin < elements; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, elements);
    double largest = 0;  // sum over ranks of the block's largest
    for (const std::vector<float>& input : inputs) {
      double most = 0;
      for (size_t e = begin; e < end; ++e) most = std::max(most, std::fabs(double{input[e]}));
      largest += most;
    }
    const int roundings = MostRoundings(inputs.size());
    const double bound = roundings * share * largest * std::pow(1 + share, roundings);
    for (size_t e = begin; e < end; ++e) {
      double exact = 0;
      for (const std::vector<float>& input : inputs) exact += input[e];
      ASSERT_NEAR(sum.vectors[0][e], exact, bound) << "element " << e;
    }
  }
}

TEST(WireSum, AnyRanksLengthAlgorithmType_BoundedErrorAndEqualBits) {
  const uint64_t seed = TestSeed(1);
  for (size_t ranks = 1; ranks <= 17; ++ranks) {
    SCOPED_TRACE(testing::Message() << "WEFT_TEST_SEED=" << seed);
    Random random(seed * 100 + ranks);
    std::vector<Sum> sums;
    for (const DType wire : kWires) {
      for (const size_t elements : {0, 1, 31, 32, 33, 95, 1000, 2049}) {
        sums.push_back(RandomSum(random, ranks, elements, wire));
      }
      for (uint64_t i = 0; i < TestCount(4); ++i) {
        sums.push_back(RandomSum(random, ranks, random.Between(0, 3000), wire));
      }
    }
    const std::vector<Sum> before = sums;
    RunSums(sums);
    for (size_t s = 0; s < sums.size(); ++s) {
      SCOPED_TRACE(Text(sums[s]));
      for (const absl::Status& status : sums[s].statuses) ASSERT_OK(status);
      ExpectSameBits(sums[s]);
      ExpectNearExact(sums[s], before[s].vectors);
    }
  }
}

// What one rank's NaN or infinity makes of the sum, all ranks have.
TEST(WireSum, F32AndBF16_KeepNaNAndInfinity) {
  const uint64_t seed = TestSeed(1);
  for (size_t ranks = 2; ranks <= 17; ranks += 3) {
    SCOPED_TRACE(testing::Message() << "WEFT_TEST_SEED=" << seed);
    Random random(seed + ranks);
    std::vector<Sum> sums;
    for (const DType wire : {DType::kF32, DType::kBF16}) {
      for (int a = 0; a < kCollectiveAlgorithmCount; ++a) {
        Sum sum = RandomSum(random, ranks, 100, wire);
        sum.algorithm = static_cast<CollectiveAlgorithm>(a);
        sum.vectors[ranks - 1][3] = std::nanf("");
        sum.vectors[0][40] = kInfinity;
        sum.vectors[ranks / 2][99] = -kInfinity;
        sum.vectors[0][98] = kInfinity;
        sum.vectors[1][98] = -kInfinity;
        sums.push_back(std::move(sum));
      }
    }
    RunSums(sums);
    for (const Sum& sum : sums) {
      SCOPED_TRACE(Text(sum));
      for (size_t r = 0; r < ranks; ++r) {
        ASSERT_OK(sum.statuses[r]);
        EXPECT_TRUE(std::isnan(sum.vectors[r][3]));
        EXPECT_EQ(sum.vectors[r][40], kInfinity);
        EXPECT_EQ(sum.vectors[r][99], -kInfinity);
        EXPECT_TRUE(std::isnan(sum.vectors[r][98]));
        EXPECT_TRUE(std::isfinite(sum.vectors[r][41]));
      }
    }
  }
}

// Q8_0 has no code for them: whoever holds one says so and sends nothing, so that no rank ends with
// a finite sum of something that is none.
TEST(WireSum, Q8_NaNOrInfinityOfAnyRank_IsAnErrorOnEveryRank) {
  for (const float value : {std::nanf(""), kInfinity, -kInfinity, 1e7f}) {
    for (int a = 0; a < kCollectiveAlgorithmCount; ++a) {
      for (size_t rank = 0; rank < 4; ++rank) {
        Random random(TestSeed(1));
        std::vector<Sum> sums = {RandomSum(random, 4, 256, DType::kQ8_0)};
        sums[0].hosts = {0, 0, 1, 1};
        sums[0].algorithm = static_cast<CollectiveAlgorithm>(a);
        for (size_t e = 0; e < 256; e += 32) sums[0].vectors[rank][e] = value;
        RunSums(sums, std::chrono::milliseconds(20));
        EXPECT_THAT(sums[0].statuses[rank], StatusIs(absl::StatusCode::kInvalidArgument,
                                                     HasSubstr("use a wider wire type")));
        for (const absl::Status& status : sums[0].statuses) EXPECT_FALSE(status.ok());
      }
    }
  }
}

// A rank that believes in another type sends other sizes: refused, whoever it is.
TEST(WireSum, RanksOfUnlikeTypes_AreRefused) {
  for (const DType mine : kWires) {
    for (const DType other : kWires) {
      if (mine == other) continue;
      Random random(TestSeed(1));
      std::vector<Sum> sums = {RandomSum(random, 2, 100, mine)};
      sums[0].algorithm = CollectiveAlgorithm::kRecursiveDoubling;
      sums[0].wires[1] = other;
      RunSums(sums);
      for (int r = 0; r < 2; ++r) {
        EXPECT_THAT(sums[0].statuses[r],
                    StatusIs(absl::StatusCode::kDataLoss, HasSubstr(absl::StrCat("rank ", 1 - r))));
      }
    }
  }
}

// Bytes that no encoder wrote decode to something, without a crash and within the vector.
TEST(WireSum, AnyBytes_Decode) {
  const uint64_t seed = TestSeed(1);
  for (uint64_t i = 0; i < TestCount(500); ++i) {
    Random random(seed + i);
    const auto elements = static_cast<size_t>(random.Between(0, 100));
    for (const DType wire : kWires) {
      std::vector<uint8_t> bytes(static_cast<size_t>(WireBytes(wire, elements)));
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Between(0, 255));
      std::vector<float> guarded(elements + 1, 7);
      DecodeWire(wire, bytes, absl::MakeSpan(guarded).first(elements));
      AddWire(wire, bytes, absl::MakeSpan(guarded).first(elements));
      ASSERT_EQ(guarded.back(), 7) << "WEFT_TEST_SEED=" << seed + i;
    }
  }
}

}  // namespace
}  // namespace weft
