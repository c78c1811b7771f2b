#include "coordinator/http/choice_streams.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/status_macros.h"

namespace weft {
namespace {

// How long to wait for one of several before looking at the others. They share their steps, so
// where one has something the others mostly have, too.
constexpr std::chrono::milliseconds kTurn{5};

}  // namespace

ChoiceStreams::ChoiceStreams(std::vector<std::shared_ptr<GenerationStream>> streams,
                             const Clock& clock)
    : streams_(std::move(streams)),
      clock_(clock),
      over_(streams_.size(), false),
      left_(static_cast<int64_t>(streams_.size())) {}

ChoiceStreams::~ChoiceStreams() {
  if (left_ > 0) Cancel();
}

void ChoiceStreams::Cancel() {
  for (const auto& stream : streams_) stream->Cancel();
}

absl::StatusOr<std::optional<ChoiceEvent>> ChoiceStreams::Ask(int64_t choice,
                                                              Clock::TimePoint until) {
  absl::StatusOr<std::optional<GenerationPiece>> piece = streams_[choice]->Next(until);
  if (!piece.ok()) {
    // A continuation's own deadline is told at once.
    timed_out_ = absl::IsDeadlineExceeded(piece.status()) && clock_.Now() >= until;
    if (timed_out_) return std::optional<ChoiceEvent>();
    return piece.status();
  }
  timed_out_ = false;
  if (!*piece) {
    over_[choice] = true;
    --left_;
  }
  return std::optional<ChoiceEvent>({choice, *std::move(piece)});
}

absl::StatusOr<std::optional<ChoiceEvent>> ChoiceStreams::Next(Clock::TimePoint until) {
  while (left_ > 0) {
    for (int64_t i = 0; i < size(); ++i) {
      const int64_t choice = turn_;
      turn_ = (turn_ + 1) % size();
      if (over_[choice]) continue;
      const Clock::TimePoint now = clock_.Now();
      // The first in turn is waited for, the others are looked at.
      const bool first = i == 0 || left_ == 1;
      const Clock::TimePoint patience = !first       ? now
                                        : left_ == 1 ? until
                                                     : std::min(until, now + kTurn);
      ASSIGN_OR_RETURN(std::optional<ChoiceEvent> event, Ask(choice, patience));
      if (event) return event;
    }
    turn_ = (turn_ + 1) % size();
    if (clock_.Now() >= until) {
      timed_out_ = true;
      return absl::DeadlineExceededError("no token came in time");
    }
  }
  return std::optional<ChoiceEvent>();
}

}  // namespace weft
