// Schedules played on symbols: what every element of every rank is the sum of.
#include "common/collectives/schedule.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

constexpr int kMostRanks = 17;

// Expressions over the ranks' elements, one number for each that differs. Additions commute, as in
// floating point, and do not associate; rounding twice is rounding once.
class Expressions {
 public:
  using Id = int32_t;

  explicit Expressions(size_t ranks) : ranks_(ranks) {}

  Id Leaf(int32_t rank) {
    std::vector<int> counts(ranks_);
    counts[rank] = 1;
    return Make({0, rank, 0}, std::move(counts));
  }
  Id Add(Id a, Id b) {
    std::vector<int> counts = counts_[a];
    for (size_t r = 0; r < ranks_; ++r) counts[r] += counts_[b][r];
    return Make({1, std::min(a, b), std::max(a, b)}, std::move(counts));
  }
  Id Rounded(Id a) {
    if (std::get<0>(keys_[a]) == 2) return a;
    return Make({2, a, 0}, counts_[a]);
  }
  // How often each rank's element is in it.
  const std::vector<int>& Counts(Id id) const { return counts_[id]; }

 private:
  using Key = std::tuple<int, Id, Id>;
  Id Make(const Key& key, std::vector<int> counts) {
    const auto [found, fresh] = ids_.emplace(key, static_cast<Id>(keys_.size()));
    if (fresh) {
      keys_.push_back(key);
      counts_.push_back(std::move(counts));
    }
    return found->second;
  }

  const size_t ranks_;
  std::map<Key, Id> ids_;
  std::vector<Key> keys_;
  std::vector<std::vector<int>> counts_;
};

using Vector = std::vector<Expressions::Id>;

// All ranks of a schedule, each at its own pace. `lossy`: messages carry rounded values.
class Play {
 public:
  Play(const CollectiveSchedule& schedule, Expressions& expressions, bool lossy, uint64_t seed)
      : schedule_(schedule),
        expressions_(expressions),
        lossy_(lossy),
        random_(seed),
        next_(schedule.ranks.size()),
        sent_(schedule.ranks.size()) {}

  // Ends when nobody can go on; an error unless all are done.
  void Run(std::vector<Vector>& vectors) {
    std::vector<int32_t> order(vectors.size());
    std::iota(order.begin(), order.end(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[random_.Between(0, static_cast<int64_t>(i) - 1)]);
      }
      for (const int32_t rank : order) moved = Step(rank, vectors[rank]) || moved;
    }
    for (size_t r = 0; r < vectors.size(); ++r) {
      EXPECT_EQ(next_[r], schedule_.ranks[r].size()) << "rank " << r << " waits for ever";
    }
    EXPECT_TRUE(messages_.empty()) << "messages that nobody receives";
  }

 private:
  bool Step(int32_t rank, Vector& vector) {
    if (next_[rank] == schedule_.ranks[rank].size()) return false;
    const Round& round = schedule_.ranks[rank][next_[rank]];
    bool moved = false;
    if (!sent_[rank]) {
      SendAll(rank, round, vector);
      sent_[rank] = moved = true;
    }
    for (const Exchange& exchange : round.exchanges) {
      if (exchange.receive.empty()) continue;
      if (!messages_.contains({exchange.peer, rank, exchange.receive_number})) return moved;
    }
    terms_.assign(static_cast<size_t>(round.sum.terms), {});
    for (const Exchange& exchange : round.exchanges) Receive(rank, exchange, vector);
    if (round.sum.terms > 0) AddUp(round.sum, vector);
    ++next_[rank];
    sent_[rank] = false;
    return true;
  }

  void SendAll(int32_t rank, const Round& round, Vector& vector) {
    for (const ElementRange& range : round.rounded) {
      for (int64_t e = range.begin; lossy_ && e < range.end; ++e) {
        vector[e] = expressions_.Rounded(vector[e]);
      }
    }
    for (const Exchange& exchange : round.exchanges) {
      if (exchange.send.empty()) continue;
      EXPECT_LT(exchange.send_number, kMessagesBetweenRanks);
      EXPECT_NE(exchange.peer, rank);
      Vector values(vector.begin() + exchange.send.begin, vector.begin() + exchange.send.end);
      for (Expressions::Id& value : values) {
        if (lossy_) value = expressions_.Rounded(value);
      }
      const bool fresh =
          messages_.emplace(std::tuple(rank, exchange.peer, exchange.send_number), values).second;
      EXPECT_TRUE(fresh) << "one name for two messages";
    }
  }

  void Receive(int32_t rank, const Exchange& exchange, Vector& vector) {
    if (exchange.receive.empty()) return;
    const auto message = messages_.find({exchange.peer, rank, exchange.receive_number});
    const Vector& values = message->second;
    ASSERT_EQ(static_cast<int64_t>(values.size()), exchange.receive.size());
    if (exchange.combine == Combine::kTerm) {
      terms_.at(exchange.term) = values;
      messages_.erase(message);
      return;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      Expressions::Id& element = vector[exchange.receive.begin + static_cast<int64_t>(i)];
      element =
          exchange.combine == Combine::kAdd ? expressions_.Add(element, values[i]) : values[i];
    }
    messages_.erase(message);
  }

  // As recursive doubling adds.
  void AddUp(const TermSum& sum, Vector& vector) {
    terms_.at(sum.own) = Vector(vector.begin() + sum.range.begin, vector.begin() + sum.range.end);
    for (const Vector& term : terms_) {
      ASSERT_EQ(static_cast<int64_t>(term.size()), sum.range.size());
    }
    size_t core = 1;
    while (core * 2 <= terms_.size()) core *= 2;
    for (int64_t e = 0; e < sum.range.size(); ++e) {
      std::vector<Expressions::Id> values;
      for (const Vector& term : terms_) values.push_back(term[e]);
      for (size_t j = core; j < values.size(); ++j) {
        values[j - core] = expressions_.Add(values[j - core], values[j]);
      }
      for (; values.size() > core;) values.pop_back();
      while (values.size() > 1) {
        std::vector<Expressions::Id> pairs;
        for (size_t i = 0; i < values.size(); i += 2) {
          pairs.push_back(expressions_.Add(values[i], values[i + 1]));
        }
        values = pairs;
      }
      vector[sum.range.begin + e] = values[0];
    }
  }

  const CollectiveSchedule& schedule_;
  Expressions& expressions_;
  const bool lossy_;
  Random random_;
  std::vector<size_t> next_;
  std::vector<bool> sent_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, Vector> messages_;
  std::vector<Vector> terms_;  // of the round
};

std::vector<Vector> Leafs(Expressions& expressions, size_t ranks, int64_t elements) {
  std::vector<Vector> vectors;
  for (size_t r = 0; r < ranks; ++r) {
    vectors.emplace_back(static_cast<size_t>(elements), expressions.Leaf(static_cast<int32_t>(r)));
  }
  return vectors;
}

void CheckAllReduce(const CollectiveShape& shape, bool lossy, uint64_t seed) {
  const size_t ranks = shape.hosts.size();
  Expressions expressions(ranks);
  std::vector<Vector> vectors = Leafs(expressions, ranks, shape.elements);
  const CollectiveSchedule schedule = MakeSchedule(shape);
  Play(schedule, expressions, lossy, seed).Run(vectors);
  const std::vector<int> once(ranks, 1);
  for (int64_t e = 0; e < shape.elements; ++e) {
    ASSERT_EQ(expressions.Counts(vectors[0][e]), once) << "element " << e;
    for (size_t r = 1; r < ranks; ++r) {
      ASSERT_EQ(vectors[r][e], vectors[0][e]) << "element " << e << " of rank " << r;
    }
    // The order does not depend on where in the vector an element is.
    ASSERT_EQ(vectors[0][e], vectors[0][0]) << "element " << e;
  }
}

CollectiveShape AllReduceShape(CollectiveAlgorithm algorithm, std::vector<int32_t> hosts,
                               int64_t elements) {
  CollectiveShape shape;
  shape.algorithm = algorithm;
  shape.hosts = std::move(hosts);
  shape.elements = elements;
  return shape;
}

TEST(Schedule, AllReduce_AnyRanks_EveryElementOnceAndTheSameEverywhere) {
  const uint64_t seed = TestSeed(1);
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int a = 0; a < kCollectiveAlgorithmCount; ++a) {
      const auto algorithm = static_cast<CollectiveAlgorithm>(a);
      for (const int64_t elements : {0, 1, 31, 32, 33, 95, 400, 32 * kMostRanks + 5}) {
        for (const bool lossy : {false, true}) {
          SCOPED_TRACE(testing::Message() << ranks << " ranks, algorithm " << a << ", " << elements
                                          << " elements, lossy " << lossy);
          CheckAllReduce(AllReduceShape(algorithm, std::vector<int32_t>(ranks), elements), lossy,
                         seed);
        }
      }
    }
  }
}

TEST(Schedule, AllReduce_RandomHosts_EveryElementOnceAndTheSameEverywhere) {
  const uint64_t seed = TestSeed(1);
  for (uint64_t i = 0; i < TestCount(300); ++i) {
    Random random(seed + i);
    std::vector<int32_t> hosts(random.Between(1, kMostRanks));
    const int64_t host_count = random.Between(1, 6);
    for (int32_t& host : hosts) host = static_cast<int32_t>(random.Between(0, host_count) * 7);
    SCOPED_TRACE(testing::Message() << "WEFT_TEST_SEED=" << seed + i);
    CheckAllReduce(AllReduceShape(static_cast<CollectiveAlgorithm>(random.Between(0, 3)), hosts,
                                  random.Between(0, 500)),
                   random.Between(0, 1) == 1, seed + i);
  }
}

// What is summed in one order, as SumOrder says, has the same expression whatever the algorithm.
TEST(Schedule, AllReduce_EqualOrders_EqualSums) {
  const uint64_t seed = TestSeed(1);
  for (uint64_t i = 0; i < TestCount(100); ++i) {
    Random random(seed + i);
    std::vector<int32_t> hosts(random.Between(1, kMostRanks));
    const int64_t host_count = random.Between(1, 5);
    for (int32_t& host : hosts) host = static_cast<int32_t>(random.Between(0, host_count));
    if (random.Between(0, 1) == 0) std::sort(hosts.begin(), hosts.end());
    SCOPED_TRACE(testing::Message() << "WEFT_TEST_SEED=" << seed + i);
    Expressions expressions(hosts.size());
    std::map<std::string, Expressions::Id> sum_of;
    for (int a = 0; a < kCollectiveAlgorithmCount; ++a) {
      const auto algorithm = static_cast<CollectiveAlgorithm>(a);
      const CollectiveShape shape = AllReduceShape(algorithm, hosts, random.Between(1, 500));
      std::vector<Vector> vectors = Leafs(expressions, hosts.size(), shape.elements);
      Play(MakeSchedule(shape), expressions, false, seed).Run(vectors);
      const auto [known, fresh] = sum_of.emplace(SumOrder(algorithm, hosts), vectors[0][0]);
      EXPECT_EQ(known->second, vectors[0][0]) << "algorithm " << a;
    }
    EXPECT_LE(sum_of.size(), 2u);
  }
}

TEST(SumOrder, IsThatOfDoubling) {
  using enum CollectiveAlgorithm;
  EXPECT_EQ(SumOrder(kByParts, std::vector<int32_t>(4)), "((0+1)+(2+3))");
  EXPECT_EQ(SumOrder(kRecursiveDoubling, std::vector<int32_t>(3)), "((0+2)+1)");
  EXPECT_EQ(SumOrder(kHostsFirstByParts, std::vector<int32_t>{0, 1, 0, 1}), "((0+2)+(1+3))");
  EXPECT_EQ(SumOrder(kHostsFirstRecursiveDoubling, std::vector<int32_t>{5, 5, 6, 6}),
            "((0+1)+(2+3))");
}

// Counts with zeros among them.
std::vector<int64_t> RandomCounts(Random& random, int ranks) {
  std::vector<int64_t> counts;
  for (int r = 0; r < ranks; ++r) {
    counts.push_back(random.Between(0, 2) == 0 ? 0 : random.Between(1, 70));
  }
  return counts;
}

TEST(Schedule, AllGatherAndReduceScatter_UnevenAndZeroCounts) {
  const uint64_t seed = TestSeed(1);
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (uint64_t i = 0; i < 4; ++i) {
      Random random(seed + i);
      CollectiveShape shape;
      shape.hosts.resize(ranks);
      shape.counts = RandomCounts(random, ranks);
      SCOPED_TRACE(testing::Message() << ranks << " ranks, WEFT_TEST_SEED=" << seed + i);
      for (const bool lossy : {false, true}) {
        Expressions expressions(ranks);
        shape.kind = CollectiveKind::kAllGather;
        std::vector<Vector> vectors = Leafs(expressions, ranks, shape.TotalElements());
        Play(MakeSchedule(shape), expressions, lossy, seed).Run(vectors);
        int64_t begin = 0;
        for (int owner = 0; owner < ranks; ++owner) {
          for (int64_t e = begin; e < begin + shape.counts[owner]; ++e) {
            const Expressions::Id leaf = expressions.Leaf(owner);
            const Expressions::Id want = lossy && ranks > 1 ? expressions.Rounded(leaf) : leaf;
            for (int r = 0; r < ranks; ++r) ASSERT_EQ(vectors[r][e], want);
          }
          begin += shape.counts[owner];
        }
        shape.kind = CollectiveKind::kReduceScatter;
        vectors = Leafs(expressions, ranks, shape.TotalElements());
        Play(MakeSchedule(shape), expressions, lossy, seed).Run(vectors);
        begin = 0;
        const std::vector<int> once(ranks, 1);
        for (int owner = 0; owner < ranks; ++owner) {
          for (int64_t e = begin; e < begin + shape.counts[owner]; ++e) {
            ASSERT_EQ(expressions.Counts(vectors[owner][e]), once);
          }
          begin += shape.counts[owner];
        }
      }
    }
  }
}

TEST(Schedule, Broadcast_AnyRootAndHosts_ReachesAll) {
  const uint64_t seed = TestSeed(1);
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int root = 0; root < ranks; ++root) {
      Random random(seed + static_cast<uint64_t>(root));
      CollectiveShape shape;
      shape.kind = CollectiveKind::kBroadcast;
      for (int r = 0; r < ranks; ++r) {
        shape.hosts.push_back(static_cast<int32_t>(random.Between(0, 3)));
      }
      shape.elements = 40;
      shape.root = root;
      for (const bool lossy : {false, true}) {
        Expressions expressions(ranks);
        std::vector<Vector> vectors = Leafs(expressions, ranks, shape.elements);
        Play(MakeSchedule(shape), expressions, lossy, seed).Run(vectors);
        const Expressions::Id leaf = expressions.Leaf(root);
        const Expressions::Id want = lossy && ranks > 1 ? expressions.Rounded(leaf) : leaf;
        for (const Vector& vector : vectors) ASSERT_EQ(vector, Vector(40, want)) << ranks;
      }
    }
  }
}

TEST(Schedule, Ranges_StartAtBlocks) {
  for (int ranks = 2; ranks <= kMostRanks; ++ranks) {
    for (int a = 0; a < kCollectiveAlgorithmCount; ++a) {
      std::vector<int32_t> hosts(ranks);
      for (int r = 0; r < ranks; ++r) hosts[r] = r / 3;
      const CollectiveSchedule schedule =
          MakeSchedule(AllReduceShape(static_cast<CollectiveAlgorithm>(a), hosts, 1000));
      for (const std::vector<Round>& rounds : schedule.ranks) {
        for (const Round& round : rounds) {
          for (const Exchange& exchange : round.exchanges) {
            EXPECT_EQ(exchange.send.begin % kRangeElements, 0);
            EXPECT_EQ(exchange.receive.begin % kRangeElements, 0);
          }
        }
      }
    }
  }
}

// The figures that docs/collectives.md gives for algorithms.
TEST(ScheduleCost, Algorithms_StepsAndElements) {
  const auto cost = [](CollectiveAlgorithm algorithm, const std::vector<int32_t>& hosts) {
    return CostOf(MakeSchedule(AllReduceShape(algorithm, hosts, 4096)), hosts);
  };
  using enum CollectiveAlgorithm;
  for (const auto& [ranks, steps] : std::vector<std::pair<int, int64_t>>{
           {1, 0}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {8, 3}, {16, 4}}) {
    const ScheduleCost doubling = cost(kRecursiveDoubling, std::vector<int32_t>(ranks));
    EXPECT_EQ(doubling.steps, steps) << ranks;
    EXPECT_EQ(doubling.outer_steps, 0);
    const ScheduleCost parts = cost(kByParts, std::vector<int32_t>(ranks));
    EXPECT_EQ(parts.steps, ranks == 1 ? 0 : 2) << ranks;
    EXPECT_EQ(parts.messages, 2 * (ranks - 1)) << ranks;
    EXPECT_NEAR(static_cast<double>(parts.elements), 4096.0 * 2 * (ranks - 1) / ranks,
                64.0 * ranks);
  }
  EXPECT_EQ(cost(kRecursiveDoubling, {0, 0, 0, 0}).elements, 2 * 4096);
  // Two hosts of two: between them goes the vector once, or a half each.
  EXPECT_EQ(cost(kHostsFirstRecursiveDoubling, {0, 0, 1, 1}).outer_elements, 4096);
  EXPECT_EQ(cost(kHostsFirstRecursiveDoubling, {0, 0, 1, 1}).outer_steps, 1);
  EXPECT_EQ(cost(kHostsFirstByParts, {0, 0, 1, 1}).outer_elements, 2048);
  EXPECT_EQ(cost(kByParts, {0, 0, 1, 1}).outer_elements, 4096);
}

}  // namespace
}  // namespace weft
