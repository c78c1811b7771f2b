#include "coordinator/meta/rank_cuts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft {
namespace {

// Units of each position, by cumulative share (spec D.8).
std::vector<int64_t> UnitsByShare(int64_t units, const std::vector<double>& shares) {
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<int64_t> counts;
  double cumulative = 0;
  int64_t low = 0;
  for (size_t j = 0; j < shares.size(); ++j) {
    cumulative += shares[j];
    const bool last = j + 1 == shares.size();
    // A little more, so that 1/3 + 1/3 + 1/3 of 3 is 3.
    const double exact = static_cast<double>(units) * cumulative / total;
    const int64_t high =
        last ? units : std::clamp<int64_t>(static_cast<int64_t>(exact + 1e-9), low, units);
    counts.push_back(high - low);
    low = high;
  }
  return counts;
}

// The last position takes the remainder also where it has no share: give that to those who have.
void GiveBack(const std::vector<double>& shares, std::vector<int64_t>& counts) {
  for (size_t j = 0; j < counts.size(); ++j) {
    if (shares[j] > 0 || counts[j] == 0) continue;
    const auto most = std::max_element(shares.begin(), shares.end()) - shares.begin();
    counts[most] += counts[j];
    counts[j] = 0;
  }
}

bool SomeoneIsEmpty(const std::vector<double>& shares, const std::vector<int64_t>& counts) {
  for (size_t j = 0; j < counts.size(); ++j) {
    if (shares[j] > 0 && counts[j] == 0) return true;
  }
  return false;
}

// A unit from the one with most to each that has a share and nothing, while that helps.
void FeedTheEmpty(const std::vector<double>& shares, std::vector<int64_t>& counts) {
  for (size_t j = 0; j < counts.size(); ++j) {
    if (shares[j] <= 0 || counts[j] > 0) continue;
    const auto most = std::max_element(counts.begin(), counts.end());
    if (*most < 2) return;
    --*most;
    ++counts[j];
  }
}

std::vector<double> SharesByPosition(const RankCutRequest& request) {
  const size_t ranks = request.shares.size();
  const bool none =
      std::all_of(request.shares.begin(), request.shares.end(), [](double s) { return s == 0; });
  std::vector<double> shares;
  for (size_t j = 0; j < ranks; ++j) {
    const size_t rank = (j + static_cast<size_t>(request.rotation)) % ranks;
    shares.push_back(none ? 1 : request.shares[rank]);
  }
  return shares;
}

}  // namespace

std::vector<IndexRange> CutBetweenRanks(const RankCutRequest& request) {
  const std::vector<double> shares = SharesByPosition(request);
  int64_t unit = request.length % request.preferred == 0 ? request.preferred : request.least;
  if (request.length % unit != 0) unit = request.length;
  std::vector<int64_t> counts = UnitsByShare(request.length / unit, shares);
  GiveBack(shares, counts);
  if (SomeoneIsEmpty(shares, counts) && unit != request.least &&
      request.length % request.least == 0) {
    unit = request.least;
    counts = UnitsByShare(request.length / unit, shares);
    GiveBack(shares, counts);
  }
  FeedTheEmpty(shares, counts);
  const size_t ranks = shares.size();
  std::vector<IndexRange> ranges(ranks);
  for (size_t j = 0; j < ranks; ++j) {
    ranges[(j + static_cast<size_t>(request.rotation)) % ranks] = {0, counts[j] * unit};
  }
  int64_t at = 0;
  for (IndexRange& range : ranges) {
    range = {at, at + range.end};
    at = range.end;
  }
  return ranges;
}

CutSegment SegmentOf(absl::Span<const IndexRange> ranges, int64_t length, int64_t factor) {
  CutSegment segment;
  segment.whole = {0, length * factor};
  for (const IndexRange& range : ranges) {
    segment.ranks.push_back({range.begin * factor, range.end * factor});
  }
  return segment;
}

std::vector<IndexRange> GroupsOf(absl::Span<const IndexRange> ranges, int64_t group) {
  std::vector<IndexRange> groups;
  for (const IndexRange& range : ranges) {
    const int64_t begin = range.begin / group;
    groups.push_back({begin, range.size() == 0 ? begin : (range.end - 1) / group + 1});
  }
  return groups;
}

}  // namespace weft
