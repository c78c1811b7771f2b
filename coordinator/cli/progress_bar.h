// One line on a terminal that shows how far long work is: bar, rate, remaining time. Silent where
// stderr is not a terminal.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/clock.h"

namespace weft {

class ProgressBar {
 public:
  // `unit` is what is counted: "B" is shown with binary prefixes, anything else as a plain number.
  ProgressBar(const Clock& clock, std::string label, std::string unit);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Redraws at most ten times a second.
  void Update(int64_t done, int64_t total);
  // Clears the line.
  void Finish();

  // The line that Update draws, for tests.
  static std::string Text(const std::string& label, const std::string& unit, int64_t done,
                          int64_t total, double seconds);

 private:
  const Clock& clock_;
  std::string label_;
  std::string unit_;
  bool terminal_;
  bool drawn_ = false;
  Clock::TimePoint start_;
  Clock::TimePoint last_;
};

// "1.25 GiB"
std::string BytesText(double bytes);

}  // namespace weft
