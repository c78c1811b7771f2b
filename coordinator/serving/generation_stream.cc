#include "coordinator/serving/generation_stream.h"

#include <iterator>
#include <utility>

#include "common/base/check.h"

namespace weft {

absl::StatusOr<std::optional<GenerationPiece>> GenerationStream::Next(Clock::TimePoint until) {
  MutexLock lock(mutex_);
  while (!piece_ && !finished_) {
    if (until == Clock::TimePoint::max()) {
      changed_.Wait(mutex_);
    } else if (!changed_.WaitUntil(mutex_, until) && !piece_ && !finished_) {
      return absl::DeadlineExceededError("no token came in time");
    }
  }
  if (piece_) return std::exchange(piece_, std::nullopt);
  if (!status_.ok()) return status_;
  return std::optional<GenerationPiece>();
}

bool GenerationStream::HasNews() const {
  MutexLock lock(mutex_);
  return piece_ || finished_;
}

void GenerationStream::SetBell(std::shared_ptr<ArrivalBell> bell) {
  MutexLock lock(mutex_);
  bell_ = std::move(bell);
}

void GenerationStream::Notify(const std::shared_ptr<ArrivalBell>& bell) {
  changed_.NotifyOne();
  if (bell != nullptr) bell->Ring();
}

void GenerationStream::Cancel() {
  cancelled_ = true;
  if (wake_) wake_();
}

GenerationSummary GenerationStream::summary() const {
  MutexLock lock(mutex_);
  return summary_;
}

void GenerationStream::Push(GenerationPiece piece) {
  std::shared_ptr<ArrivalBell> bell;
  {
    MutexLock lock(mutex_);
    WEFT_CHECK(!finished_);
    bell = bell_;
    if (piece_) {
      piece_->text += piece.text;
      piece_->tokens.insert(piece_->tokens.end(), std::make_move_iterator(piece.tokens.begin()),
                            std::make_move_iterator(piece.tokens.end()));
    } else {
      piece_ = std::move(piece);
    }
  }
  Notify(bell);
}

void GenerationStream::Finish(absl::Status status, const GenerationSummary& summary) {
  std::shared_ptr<ArrivalBell> bell;
  {
    MutexLock lock(mutex_);
    WEFT_CHECK(!finished_);
    bell = bell_;
    finished_ = true;
    status_ = std::move(status);
    summary_ = summary;
  }
  Notify(bell);
}

}  // namespace weft
