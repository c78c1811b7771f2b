// Counts of values by upper bound, as Prometheus takes them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace weft {

// A histogram as it is shown.
struct HistogramView {
  absl::Span<const double> bounds;
  absl::Span<const int64_t> counts;  // each of its own bucket; beyond the last bound: the rest
  int64_t count = 0;
  double sum = 0;
};

// `Bounds::kBounds` is an ascending array.
template <typename Bounds>
struct Histogram {
  static constexpr auto kBounds = Bounds::kBounds;
  std::array<int64_t, kBounds.size()> counts = {};
  int64_t count = 0;
  double sum = 0;

  void Add(double value) {
    ++count;
    sum += value;
    const size_t bucket = BucketOf(value);
    if (bucket < counts.size()) ++counts[bucket];
  }
  void Add(const Histogram& other) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
    count += other.count;
    sum += other.sum;
  }
  // kBounds.size() for what is beyond the last bound.
  static size_t BucketOf(double value) {
    return static_cast<size_t>(
        std::lower_bound(Bounds::kBounds.begin(), Bounds::kBounds.end(), value) -
        Bounds::kBounds.begin());
  }
  HistogramView view() const { return {Bounds::kBounds, counts, count, sum}; }
};

// Seconds of what people wait for.
struct WaitBounds {
  static constexpr std::array<double, 14> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,  0.5,    1,     2.5,  5,     10,   30};
};
using DurationHistogram = Histogram<WaitBounds>;

// Seconds of what machines do in a step.
struct WorkBounds {
  static constexpr std::array<double, 14> kBounds = {
      1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.1, 0.5, 2.5};
};
using WorkHistogram = Histogram<WorkBounds>;

// Numbers of things at a time.
struct SizeBounds {
  static constexpr std::array<double, 12> kBounds = {1,  2,   4,   8,   16,   32,
                                                     64, 128, 256, 512, 1024, 2048};
};
using SizeHistogram = Histogram<SizeBounds>;

}  // namespace weft
