#include "common/collectives/schedule.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <numeric>

namespace weft {
namespace {

using Ranks = std::vector<int32_t>;

class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(size_t ranks) : rounds_(ranks) {}

  // What follows happens after what came before.
  void NextRound() {
    for (std::vector<Round>& rounds : rounds_) rounds.emplace_back();
  }

  void Send(int32_t from, int32_t to, const ElementRange& range, Combine combine,
            int32_t term = 0) {
    if (range.empty()) return;
    const int32_t number = sent_[{from, to}]++;
    Exchange& out = ExchangeOf(from, to);
    out.send = range;
    out.send_number = number;
    Exchange& in = ExchangeOf(to, from);
    in.receive = range;
    in.combine = combine;
    in.term = term;
    in.receive_number = number;
  }

  void RoundOwn(int32_t rank, const ElementRange& range) {
    if (!range.empty()) rounds_[rank].back().rounded.push_back(range);
  }

  // Part k of all ranks' vectors is summed at ranks[k], for as many parts as there are; others keep
  // what they have. Each is a term, rounded like those that travel.
  void SumParts(const Ranks& ranks, const std::vector<ElementRange>& parts) {
    if (ranks.size() < 2) return;
    // Two are added in one order only.
    const Combine combine = ranks.size() == 2 ? Combine::kAdd : Combine::kTerm;
    for (size_t k = 0; k < parts.size(); ++k) {
      RoundOwn(ranks[k], parts[k]);
      if (combine == Combine::kAdd || parts[k].empty()) continue;
      rounds_[ranks[k]].back().sum = {parts[k], static_cast<int32_t>(ranks.size()),
                                      static_cast<int32_t>(k)};
    }
    ForAllPairs(ranks, [&](size_t from, size_t to) {
      if (to >= parts.size()) return;
      Send(ranks[from], ranks[to], parts[to], combine, static_cast<int32_t>(from));
    });
  }

  void ReduceScatter(const Ranks& ranks, const std::vector<ElementRange>& parts) {
    if (ranks.size() < 2) return;
    NextRound();
    SumParts(ranks, parts);
  }

  // parts[i], which ranks[i] has, to all others.
  void AllGather(const Ranks& ranks, const std::vector<ElementRange>& parts) {
    if (ranks.size() < 2) return;
    NextRound();
    for (size_t i = 0; i < ranks.size(); ++i) RoundOwn(ranks[i], parts[i]);
    ForAllPairs(ranks, [&](size_t from, size_t to) {
      Send(ranks[from], ranks[to], parts[from], Combine::kCopy);
    });
  }

  void RecursiveDoubling(const Ranks& ranks, const ElementRange& range) {
    const size_t core = std::bit_floor(ranks.size());
    if (core < ranks.size()) {
      NextRound();
      for (size_t j = core; j < ranks.size(); ++j) {
        Send(ranks[j], ranks[j - core], range, Combine::kAdd);
      }
    }
    for (size_t distance = 1; distance < core; distance *= 2) {
      NextRound();
      for (size_t i = 0; i < core; ++i) {
        RoundOwn(ranks[i], range);
        Send(ranks[i], ranks[i ^ distance], range, Combine::kAdd);
      }
    }
    if (core == ranks.size()) return;
    NextRound();
    for (size_t i = 0; i < core; ++i) RoundOwn(ranks[i], range);
    for (size_t j = core; j < ranks.size(); ++j) {
      Send(ranks[j - core], ranks[j], range, Combine::kCopy);
    }
  }

  // A binomial tree: whoever has it hands it on to a rank at half the distance.
  void Broadcast(const Ranks& ranks, const ElementRange& range) {
    size_t distance = std::bit_floor(ranks.size());
    if (distance == ranks.size()) distance /= 2;
    bool first = true;
    for (; distance > 0; distance /= 2) {
      NextRound();
      if (first) RoundOwn(ranks[0], range);
      first = false;
      for (size_t i = 0; i + distance < ranks.size(); i += 2 * distance) {
        Send(ranks[i], ranks[i + distance], range, Combine::kCopy);
      }
    }
  }

  CollectiveSchedule Finish() && {
    for (std::vector<Round>& rounds : rounds_) {
      std::erase_if(rounds, [](const Round& round) {
        return round.exchanges.empty() && round.rounded.empty();
      });
    }
    return {std::move(rounds_)};
  }

 private:
  // Each rank begins with the one behind it, so that no rank is everybody's first.
  template <typename Visit>
  static void ForAllPairs(const Ranks& ranks, const Visit& visit) {
    for (size_t shift = 1; shift < ranks.size(); ++shift) {
      for (size_t i = 0; i < ranks.size(); ++i) visit(i, (i + shift) % ranks.size());
    }
  }

  Exchange& ExchangeOf(int32_t rank, int32_t peer) {
    std::vector<Exchange>& exchanges = rounds_[rank].back().exchanges;
    for (Exchange& exchange : exchanges) {
      if (exchange.peer == peer) return exchange;
    }
    exchanges.emplace_back().peer = peer;
    return exchanges.back();
  }

  std::vector<std::vector<Round>> rounds_;
  std::map<std::pair<int32_t, int32_t>, int32_t> sent_;
};

// `range` in `count` parts of nearly equal size.
std::vector<ElementRange> Cut(const ElementRange& range, size_t count) {
  const int64_t blocks = (range.size() + kRangeElements - 1) / kRangeElements;
  std::vector<ElementRange> parts;
  int64_t begin = range.begin;
  for (size_t i = 1; i <= count; ++i) {
    const int64_t blocks_before = blocks * static_cast<int64_t>(i) / static_cast<int64_t>(count);
    const int64_t end = std::min(range.begin + blocks_before * kRangeElements, range.end);
    parts.push_back({begin, end});
    begin = end;
  }
  return parts;
}

std::vector<ElementRange> PartsOf(const std::vector<int64_t>& counts) {
  std::vector<ElementRange> parts;
  int64_t begin = 0;
  for (const int64_t count : counts) {
    parts.push_back({begin, begin + count});
    begin += count;
  }
  return parts;
}

// The ranks of each host, hosts in the order of their first rank.
std::vector<Ranks> GroupByHost(const std::vector<int32_t>& hosts) {
  std::vector<Ranks> groups;
  std::map<int32_t, size_t> group_of;
  for (size_t r = 0; r < hosts.size(); ++r) {
    const auto [at, fresh] = group_of.emplace(hosts[r], groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(static_cast<int32_t>(r));
  }
  return groups;
}

void AllReduceInGroup(ScheduleBuilder& builder, const Ranks& ranks, const ElementRange& range,
                      bool by_parts) {
  if (!by_parts) return builder.RecursiveDoubling(ranks, range);
  const std::vector<ElementRange> parts = Cut(range, ranks.size());
  builder.ReduceScatter(ranks, parts);
  builder.AllGather(ranks, parts);
}

// Every host sums part k at its rank number k; the ranks of number k of all hosts reduce it; and
// each hands it to the others of its host. By parts there are as many as the smallest host has
// ranks, else one.
void AllReduceHostsFirst(ScheduleBuilder& builder, const std::vector<Ranks>& groups,
                         const ElementRange& range, bool by_parts) {
  size_t holders = groups[0].size();
  for (const Ranks& group : groups) holders = std::min(holders, group.size());
  if (!by_parts) holders = 1;
  const std::vector<ElementRange> parts = Cut(range, holders);
  builder.NextRound();
  for (const Ranks& group : groups) builder.SumParts(group, parts);
  for (size_t k = 0; k < holders; ++k) {
    Ranks column;
    for (const Ranks& group : groups) column.push_back(group[k]);
    AllReduceInGroup(builder, column, parts[k], by_parts);
  }
  builder.NextRound();
  for (const Ranks& group : groups) {
    for (size_t k = 0; k < holders; ++k) builder.RoundOwn(group[k], parts[k]);
    for (size_t shift = 1; shift < group.size(); ++shift) {
      for (size_t k = 0; k < holders; ++k) {
        builder.Send(group[k], group[(k + shift) % group.size()], parts[k], Combine::kCopy);
      }
    }
  }
}

void AllReduce(ScheduleBuilder& builder, const CollectiveShape& shape) {
  const ElementRange range{0, shape.elements};
  const bool by_parts = IsByParts(shape.algorithm);
  const std::vector<Ranks> groups = GroupByHost(shape.hosts);
  if (IsHostsFirst(shape.algorithm) && groups.size() > 1 && groups.size() < shape.hosts.size()) {
    return AllReduceHostsFirst(builder, groups, range, by_parts);
  }
  Ranks all(shape.hosts.size());
  std::iota(all.begin(), all.end(), 0);
  AllReduceInGroup(builder, all, range, by_parts);
}

// From the root to one rank of each other host, and on from there.
void Broadcast(ScheduleBuilder& builder, const CollectiveShape& shape) {
  const ElementRange range{0, shape.elements};
  std::vector<Ranks> groups = GroupByHost(shape.hosts);
  const auto holds_root = [&](const Ranks& group) {
    return std::find(group.begin(), group.end(), shape.root) != group.end();
  };
  std::stable_partition(groups.begin(), groups.end(), holds_root);
  std::stable_partition(groups[0].begin(), groups[0].end(),
                        [&](int32_t rank) { return rank == shape.root; });
  Ranks firsts;
  for (const Ranks& group : groups) firsts.push_back(group[0]);
  if (firsts.size() < shape.hosts.size()) builder.Broadcast(firsts, range);
  if (firsts.size() == shape.hosts.size()) return builder.Broadcast(firsts, range);
  for (const Ranks& group : groups) builder.Broadcast(group, range);
}

}  // namespace

std::string_view CollectiveKindName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kBroadcast:
      return "broadcast";
  }
  return "?";
}

std::string_view CollectiveAlgorithmName(CollectiveAlgorithm algorithm) {
  switch (algorithm) {
    case CollectiveAlgorithm::kRecursiveDoubling:
      return "recursive doubling";
    case CollectiveAlgorithm::kByParts:
      return "by parts";
    case CollectiveAlgorithm::kHostsFirstRecursiveDoubling:
      return "hosts first, recursive doubling";
    case CollectiveAlgorithm::kHostsFirstByParts:
      return "hosts first, by parts";
  }
  return "?";
}

bool IsByParts(CollectiveAlgorithm algorithm) {
  return algorithm == CollectiveAlgorithm::kByParts ||
         algorithm == CollectiveAlgorithm::kHostsFirstByParts;
}

bool IsHostsFirst(CollectiveAlgorithm algorithm) {
  return algorithm == CollectiveAlgorithm::kHostsFirstRecursiveDoubling ||
         algorithm == CollectiveAlgorithm::kHostsFirstByParts;
}

namespace {

// The order of recursive doubling among these.
std::string DoublingOrder(std::vector<std::string> terms) {
  AddAsDoubling(terms.size(), [&](size_t to, size_t from) {
    // Sums commute.
    const auto [first, second] = std::minmax(terms[to], terms[from]);
    terms[to] = "(" + first + "+" + second + ")";
  });
  return terms[0];
}

std::string OrderOfRanks(const Ranks& ranks) {
  std::vector<std::string> terms;
  for (const int32_t rank : ranks) terms.push_back(std::to_string(rank));
  return DoublingOrder(std::move(terms));
}

}  // namespace

std::string SumOrder(CollectiveAlgorithm algorithm, absl::Span<const int32_t> hosts) {
  if (!IsHostsFirst(algorithm)) {
    Ranks all(hosts.size());
    std::iota(all.begin(), all.end(), 0);
    return OrderOfRanks(all);
  }
  std::vector<std::string> terms;
  for (const Ranks& group : GroupByHost({hosts.begin(), hosts.end()})) {
    terms.push_back(OrderOfRanks(group));
  }
  return DoublingOrder(std::move(terms));
}

int64_t CollectiveShape::TotalElements() const {
  const bool whole = kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kBroadcast;
  return whole ? elements : std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

CollectiveSchedule MakeSchedule(const CollectiveShape& shape) {
  ScheduleBuilder builder(shape.hosts.size());
  Ranks all(shape.hosts.size());
  std::iota(all.begin(), all.end(), 0);
  switch (shape.kind) {
    case CollectiveKind::kAllReduce:
      AllReduce(builder, shape);
      break;
    case CollectiveKind::kAllGather:
      builder.AllGather(all, PartsOf(shape.counts));
      break;
    case CollectiveKind::kReduceScatter:
      builder.ReduceScatter(all, PartsOf(shape.counts));
      break;
    case CollectiveKind::kBroadcast:
      Broadcast(builder, shape);
      break;
  }
  return std::move(builder).Finish();
}

namespace {

// The longest chain of rounds, each of which receives from a rank whose round before it sent: found
// by playing the rounds in any order that their messages allow.
class ChainFinder {
 public:
  ChainFinder(const CollectiveSchedule& schedule, absl::Span<const int32_t> hosts)
      : schedule_(schedule), hosts_(hosts) {}

  // Only messages between hosts count if `outer`.
  int64_t Longest(bool outer) {
    const size_t count = schedule_.ranks.size();
    std::vector<int64_t> at(count);   // length of the chain that each rank's state ends
    std::vector<size_t> next(count);  // round of each rank
    std::vector<bool> sent(count);    // its messages are out
    std::map<std::array<int32_t, 3>, int64_t> on_the_way;  // from, to, number -> chain
    int64_t longest = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t r = 0; r < count; ++r) {
        if (next[r] == schedule_.ranks[r].size()) continue;
        const Round& round = schedule_.ranks[r][next[r]];
        const auto rank = static_cast<int32_t>(r);
        if (!sent[r]) {
          for (const Exchange& exchange : round.exchanges) {
            if (exchange.send.empty()) continue;
            const bool counts = !outer || hosts_[r] != hosts_[exchange.peer];
            on_the_way[{rank, exchange.peer, exchange.send_number}] = at[r] + (counts ? 1 : 0);
          }
          sent[r] = true;
          moved = true;
        }
        int64_t chain = at[r];
        bool all = true;
        for (const Exchange& exchange : round.exchanges) {
          if (exchange.receive.empty()) continue;
          const auto message = on_the_way.find({exchange.peer, rank, exchange.receive_number});
          all = all && message != on_the_way.end();
          if (message != on_the_way.end()) chain = std::max(chain, message->second);
        }
        if (!all) continue;
        at[r] = chain;
        longest = std::max(longest, chain);
        ++next[r];
        sent[r] = false;
        moved = true;
      }
    }
    return longest;
  }

 private:
  const CollectiveSchedule& schedule_;
  const absl::Span<const int32_t> hosts_;
};

}  // namespace

ScheduleCost CostOf(const CollectiveSchedule& schedule, absl::Span<const int32_t> hosts) {
  ScheduleCost cost;
  ChainFinder finder(schedule, hosts);
  cost.steps = finder.Longest(/*outer=*/false);
  cost.outer_steps = finder.Longest(/*outer=*/true);
  for (size_t r = 0; r < schedule.ranks.size(); ++r) {
    ScheduleCost mine;
    for (const Round& round : schedule.ranks[r]) {
      for (const Exchange& exchange : round.exchanges) {
        if (exchange.send.empty()) continue;
        ++mine.messages;
        mine.elements += exchange.send.size();
        if (hosts[r] == hosts[exchange.peer]) continue;
        ++mine.outer_messages;
        mine.outer_elements += exchange.send.size();
      }
    }
    cost.messages = std::max(cost.messages, mine.messages);
    cost.elements = std::max(cost.elements, mine.elements);
    cost.outer_messages = std::max(cost.outer_messages, mine.outer_messages);
    cost.outer_elements = std::max(cost.outer_elements, mine.outer_elements);
  }
  return cost;
}

}  // namespace weft
