// How many lines of a log go to something that strangers can make happen as often as they like.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/clock.h"

namespace weft {

// A few lines at once, then one each ten seconds. Not thread-safe.
class LineBudget {
 public:
  // Whether a line may be written now; then `left_out` becomes the number of those before it that
  // were not.
  bool Take(Clock::TimePoint now, int64_t& left_out) {
    Refill(now);
    if (lines_ == 0) {
      ++left_out_;
      return false;
    }
    --lines_;
    left_out = std::exchange(left_out_, 0);
    return true;
  }
  // The number of those that were left out, once there is room for a line about them; else 0.
  int64_t TakeLeftOut(Clock::TimePoint now) {
    if (left_out_ == 0) return 0;
    Refill(now);
    if (lines_ == 0) return 0;
    --lines_;
    return std::exchange(left_out_, 0);
  }
  bool has_left_out() const { return left_out_ > 0; }

 private:
  static constexpr int64_t kMostLines = 5;
  static constexpr std::chrono::seconds kPeriod{10};

  void Refill(Clock::TimePoint now) {
    const int64_t periods = (now - since_) / kPeriod;
    if (periods <= 0) return;
    lines_ = std::min(kMostLines, lines_ + std::min(periods, kMostLines));
    since_ = now;
  }

  int64_t lines_ = kMostLines;  // that may be written
  int64_t left_out_ = 0;
  Clock::TimePoint since_{};  // when lines were last added
};

}  // namespace weft
