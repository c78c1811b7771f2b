// A clock that moves when a test tells it to.
#pragma once

#include <chrono>

#include "common/base/clock.h"

namespace weft {

class HandClock final : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void Move(TimePoint::duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

}  // namespace weft
