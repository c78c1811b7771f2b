// Who was turned away, and why, in few lines.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/line_budget.h"
#include "common/base/log.h"

namespace weft {

// Says it on a logger, as often as a LineBudget allows; a line tells how many it stands for. Not
// thread-safe.
class RefusalLog {
 public:
  // All outlive it; `logger` may be null. `what` is what was refused.
  RefusalLog(Logger* logger, const Clock& clock, std::string_view what)
      : logger_(logger), clock_(clock), what_(what) {}

  // `who` is the address of the other side as the system knows it, empty if it does not.
  void Add(std::string_view who, std::string_view why);
  // Says how many there were of whom nothing was said, if it may. For those who look every now and
  // then.
  void SayRest();
  // Whether there are any.
  bool has_rest() const { return budget_.has_left_out(); }
  int64_t count() const { return count_; }

 private:
  Logger* const logger_;
  const Clock& clock_;
  const std::string_view what_;
  LineBudget budget_;
  int64_t count_ = 0;
};

}  // namespace weft
