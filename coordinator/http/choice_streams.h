// The continuations of one request, waited for together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "coordinator/serving/generation_stream.h"

namespace weft {

struct ChoiceEvent {
  int64_t choice = 0;
  std::optional<GenerationPiece> piece;  // nothing: the continuation is over
};

// One thread, but for Cancel.
class ChoiceStreams {
 public:
  ChoiceStreams(std::vector<std::shared_ptr<GenerationStream>> streams, const Clock& clock);
  // Cancels those that are not over.
  ~ChoiceStreams();
  ChoiceStreams(const ChoiceStreams&) = delete;
  ChoiceStreams& operator=(const ChoiceStreams&) = delete;

  // Any thread.
  void Cancel();

  // What comes next from any of them, or nothing once all are over. Errors: that of a continuation;
  // nothing more is to be asked for then. DEADLINE_EXCEEDED, with `until` past, also means that
  // nothing came; see TimedOut.
  absl::StatusOr<std::optional<ChoiceEvent>> Next(Clock::TimePoint until);
  // The last error of Next only said that nothing came.
  bool TimedOut() const { return timed_out_; }

  int64_t size() const { return static_cast<int64_t>(streams_.size()); }
  // Of one that is over.
  GenerationSummary summary(int64_t choice) const { return streams_[choice]->summary(); }

 private:
  // Of one that has news.
  absl::StatusOr<std::optional<ChoiceEvent>> Take(int64_t choice);

  const std::vector<std::shared_ptr<GenerationStream>> streams_;
  const Clock& clock_;
  const std::shared_ptr<ArrivalBell> bell_ = std::make_shared<ArrivalBell>();
  std::vector<bool> over_;
  int64_t left_;      // that are not over
  int64_t turn_ = 0;  // whom to ask first
  bool timed_out_ = false;
};

}  // namespace weft
