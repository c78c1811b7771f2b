// Where the time of a token went: the wall clock cut at time stamps that neighbours share, so that
// the parts add up to it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "common/program/program_host.h"

namespace weft {

enum class TokenPart : uint8_t {
  kSampling,   // the choice from candidates or logits
  kText,       // the token's text, and what is done with it
  kBuilding,   // the step's inputs, pages and graph
  kSending,    // until all processes have the step
  kComputing,  // of the rank that was at the step for longest
  kWaiting,    // of that rank, for other ranks
  kWire,       // of that rank, on messages of collectives
  kHandOff,    // of that rank, on tensors to and from other processes
  kTransit,    // until the outputs were here, beyond that: messages, threads that wake
  kReading,    // outputs to candidates or logits
  kOther,      // what lies between
};
inline constexpr size_t kTokenParts = 11;

// "sampling", "text", ..., "hand_off", ..., "other".
const char* TokenPartText(TokenPart part);

struct TokenTimes {
  std::array<double, kTokenParts> seconds = {};
  double wall_seconds = 0;  // measured apart, from the first stamp to the last

  double& operator[](TokenPart part) { return seconds[static_cast<size_t>(part)]; }
  double operator[](TokenPart part) const { return seconds[static_cast<size_t>(part)]; }
  double Sum() const;
  void Add(const TokenTimes& other);
};

// One thread.
class TokenTimer {
 public:
  explicit TokenTimer(const Clock& clock) : clock_(clock) {}

  // A token begins now, where the one before it, if any, ends.
  void Begin();
  // The last one ends without another.
  void End();
  // What happened since the last mark, or since the token began. Ignored between tokens.
  void Mark(TokenPart part);
  // As Mark, for a step that was waited for since the last mark: cut by what its ranks did.
  void MarkStep(const StepOutput& output);

  const std::vector<TokenTimes>& tokens() const { return tokens_; }

 private:
  double Lap();
  void Finish(Clock::TimePoint now);

  const Clock& clock_;
  bool running_ = false;
  Clock::TimePoint began_;
  Clock::TimePoint last_;
  TokenTimes current_;
  std::vector<TokenTimes> tokens_;
};

// The mean of the middle fifth of the tokens by wall clock: what is usual, with parts that add up
// still, which medians of each would not. Of no tokens: zeros.
TokenTimes UsualTokenTimes(const std::vector<TokenTimes>& tokens);
// The sum over all.
TokenTimes AllTokenTimes(const std::vector<TokenTimes>& tokens);

}  // namespace weft
