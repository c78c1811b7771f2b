// Many continuations at once over one session: requests wait, are admitted, share steps, and come
// out of their streams. A session that is lost is opened again, and what was under way goes on.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "coordinator/serving/batch_engine.h"
#include "coordinator/serving/generation_request.h"
#include "coordinator/serving/generation_stream.h"
#include "coordinator/serving/serving_inbox.h"
#include "coordinator/serving/serving_session.h"
#include "coordinator/serving/serving_state.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

struct ServingOptions {
  int64_t most_waiting = 256;  // requests that wait for admission
  bool reuse_prefixes = true;  // of prompts, by pages
  // Between attempts to open a lost session; doubled each time, up to 5 s.
  std::chrono::milliseconds first_retry{200};
};

class InferenceLoop {
 public:
  // Opens the session and sends a token through it. `tokenizer` and `clock` outlive the loop.
  // Errors: those of `open` and of the step.
  static absl::StatusOr<std::unique_ptr<InferenceLoop>> Start(OpenServingSession open,
                                                              const Tokenizer& tokenizer,
                                                              const ServingOptions& options,
                                                              const Clock& clock, Logger& logger);
  // As Stop.
  ~InferenceLoop();

  // Any thread. Errors: INVALID_ARGUMENT for a request that can never run, naming its field;
  // RESOURCE_EXHAUSTED if too many wait; UNAVAILABLE while the loop drains.
  absl::StatusOr<std::shared_ptr<GenerationStream>> Submit(GenerationRequest request);

  // Takes no more requests; true when none is under way any longer, false at the deadline.
  bool Drain(Clock::TimePoint deadline) { return inbox_->Drain(deadline); }

  // Ends what is under way with UNAVAILABLE; returns when all streams know, which may take as long
  // as the step that is computed. Not on two threads at once.
  void Stop();

  // For health, metrics and the page. Any thread.
  ServingState state() const { return inbox_->state(); }

  // Most tokens of prompt and continuation together.
  int64_t context() const { return context_; }

 private:
  InferenceLoop(OpenServingSession open, const Tokenizer& tokenizer, const ServingOptions& options,
                const Clock& clock, Logger& logger);

  // --- The thread ---
  absl::Status OpenSession();
  void Run();
  // One turn: who leaves, who comes, one step.
  absl::Status Turn();
  void EndUnwanted();
  // One that has no slot.
  void End(Sequence& sequence, const absl::Status& status);
  void Admit();
  void HandleFailure(const absl::Status& status);
  // Until it is open, or the loop stops: then there is no engine.
  void ReopenSession(const absl::Status& reason);
  void EndAll(const absl::Status& status);
  void Show(const absl::Status& trouble);

  const OpenServingSession open_;
  const Tokenizer& tokenizer_;
  const ServingOptions options_;
  const Clock& clock_;
  Logger& logger_;
  std::shared_ptr<ServingInbox> inbox_;  // streams wake it, and may outlive the loop
  int64_t context_ = 0;
  int64_t n_vocab_ = 0;
  int64_t cache_tokens_ = 0;
  std::unique_ptr<ServingSession> session_;
  std::unique_ptr<BatchEngine> engine_;
  absl::Status leaving_;                           // of the session
  std::deque<std::unique_ptr<Sequence>> resumed_;  // had a slot before; the oldest first
  ServingCounters counters_;
  Clock::TimePoint last_progress_;
  ServingState shown_;
  Clock::TimePoint session_described_{};
  std::thread thread_;
};

}  // namespace weft
