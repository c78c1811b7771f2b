#include "coordinator/http/choice_streams.h"

#include <utility>

#include "common/base/status_macros.h"

namespace weft {

ChoiceStreams::ChoiceStreams(std::vector<std::shared_ptr<GenerationStream>> streams,
                             const Clock& clock)
    : streams_(std::move(streams)),
      clock_(clock),
      over_(streams_.size(), false),
      left_(static_cast<int64_t>(streams_.size())) {
  for (const auto& stream : streams_) stream->SetBell(bell_);
}

ChoiceStreams::~ChoiceStreams() {
  if (left_ > 0) Cancel();
}

void ChoiceStreams::Cancel() {
  for (const auto& stream : streams_) stream->Cancel();
}

absl::StatusOr<std::optional<ChoiceEvent>> ChoiceStreams::Take(int64_t choice) {
  ASSIGN_OR_RETURN(std::optional<GenerationPiece> piece,
                   streams_[choice]->Next(Clock::TimePoint::max()));
  if (!piece) {
    over_[choice] = true;
    --left_;
  }
  return std::optional<ChoiceEvent>({choice, std::move(piece)});
}

absl::StatusOr<std::optional<ChoiceEvent>> ChoiceStreams::Next(Clock::TimePoint until) {
  timed_out_ = false;
  while (left_ > 0) {
    const uint64_t heard = bell_->count();
    for (int64_t i = 0; i < size(); ++i) {
      const int64_t choice = turn_;
      turn_ = (turn_ + 1) % size();
      if (!over_[choice] && streams_[choice]->HasNews()) return Take(choice);
    }
    if (clock_.Now() >= until) {
      timed_out_ = true;
      return absl::DeadlineExceededError("no token came in time");
    }
    bell_->AwaitMore(heard, until);
  }
  return std::optional<ChoiceEvent>();
}

}  // namespace weft
