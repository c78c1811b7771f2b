#include "coordinator/engine/token_times.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace weft {

const char* TokenPartText(TokenPart part) {
  constexpr std::array<const char*, kTokenParts> kTexts = {
      "sampling", "text",     "building", "sending", "computing", "waiting",
      "wire",     "hand_off", "transit",  "reading", "other"};
  return kTexts[static_cast<size_t>(part)];
}

double TokenTimes::Sum() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

void TokenTimes::Add(const TokenTimes& other) {
  for (size_t i = 0; i < kTokenParts; ++i) seconds[i] += other.seconds[i];
  wall_seconds += other.wall_seconds;
}

void TokenTimer::Finish(Clock::TimePoint now) {
  current_[TokenPart::kOther] += std::chrono::duration<double>(now - last_).count();
  current_.wall_seconds = std::chrono::duration<double>(now - began_).count();
  tokens_.push_back(current_);
}

void TokenTimer::Begin() {
  const Clock::TimePoint now = clock_.Now();
  if (running_) Finish(now);
  running_ = true;
  began_ = last_ = now;
  current_ = {};
}

void TokenTimer::End() {
  if (running_) Finish(clock_.Now());
  running_ = false;
}

double TokenTimer::Lap() {
  const Clock::TimePoint now = clock_.Now();
  const double seconds = std::chrono::duration<double>(now - last_).count();
  last_ = now;
  return seconds;
}

void TokenTimer::Mark(TokenPart part) {
  if (running_) current_[part] += Lap();
}

void TokenTimer::MarkStep(const StepOutput& output) {
  if (!running_) return;
  const double seconds = Lap();
  // A rank may begin before all have been sent their part.
  const double early =
      std::clamp(output.busy_seconds() - seconds, 0.0, current_[TokenPart::kSending]);
  current_[TokenPart::kSending] -= early;
  current_[TokenPart::kComputing] += output.compute_seconds;
  current_[TokenPart::kWaiting] += output.wait_seconds;
  current_[TokenPart::kWire] += output.wire_seconds;
  current_[TokenPart::kHandOff] += output.hand_off_seconds;
  current_[TokenPart::kTransit] += std::max(0.0, seconds + early - output.busy_seconds());
}

TokenTimes UsualTokenTimes(const std::vector<TokenTimes>& tokens) {
  if (tokens.empty()) return {};
  std::vector<TokenTimes> sorted = tokens;
  std::sort(sorted.begin(), sorted.end(), [](const TokenTimes& a, const TokenTimes& b) {
    return a.wall_seconds < b.wall_seconds;
  });
  const size_t first = sorted.size() * 2 / 5;
  const size_t last = std::max(first + 1, sorted.size() * 3 / 5);
  TokenTimes mean;
  for (size_t i = first; i < last; ++i) mean.Add(sorted[i]);
  const auto count = static_cast<double>(last - first);
  for (double& seconds : mean.seconds) seconds /= count;
  mean.wall_seconds /= count;
  return mean;
}

TokenTimes AllTokenTimes(const std::vector<TokenTimes>& tokens) {
  TokenTimes sum;
  for (const TokenTimes& token : tokens) sum.Add(token);
  return sum;
}

}  // namespace weft
