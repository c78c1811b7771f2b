// Where a continuation comes out: the engine's thread puts pieces in, the client's takes them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "coordinator/serving/arrival_bell.h"
#include "coordinator/serving/generation_request.h"

namespace weft {

// One thread on either side. Pieces that nobody took are joined, so what waits is bounded by the
// continuation.
class GenerationStream {
 public:
  // `wake` is called by Cancel, on its thread. May be empty.
  explicit GenerationStream(std::function<void()> wake = nullptr) : wake_(std::move(wake)) {}

  // --- The client's side ---

  // The next piece, or nothing after the last one. Errors: the one that ended the continuation;
  // DEADLINE_EXCEEDED if nothing came by `until`, after which it may be called again.
  absl::StatusOr<std::optional<GenerationPiece>> Next(Clock::TimePoint until);
  // Whether Next would return at once.
  bool HasNews() const;
  // Rings when something comes from now on.
  void SetBell(std::shared_ptr<ArrivalBell> bell);
  // Nobody waits any longer. The engine gives up within a step.
  void Cancel();
  // After Next gave nothing.
  GenerationSummary summary() const;

  // --- The engine's side ---

  void Push(GenerationPiece piece);
  // Nothing may be pushed after it.
  void Finish(absl::Status status, const GenerationSummary& summary);
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  // After a change, without the mutex: who is woken finds it free.
  void Notify(const std::shared_ptr<ArrivalBell>& bell);

  const std::function<void()> wake_;
  std::atomic<bool> cancelled_ = false;
  mutable Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<ArrivalBell> bell_ ABSL_GUARDED_BY(mutex_);
  std::optional<GenerationPiece> piece_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  GenerationSummary summary_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
