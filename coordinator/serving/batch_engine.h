// Continuous batching over one session: the sequences that have a slot, and the steps that they
// share.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "coordinator/serving/batch_former.h"
#include "coordinator/serving/sequence.h"
#include "coordinator/serving/serving_session.h"
#include "coordinator/serving/serving_state.h"

namespace weft {

// One thread.
class BatchEngine {
 public:
  // `session` is fresh. Sequences that end are counted in `counters`. Everything outlives it.
  BatchEngine(ServingSession& session, bool reuse_prefixes, const Clock& clock,
              ServingCounters& counters);

  // One token through every rank, and out again. Errors: of the step.
  absl::Status Probe();

  // --- Sequences ---

  // Whether there is a slot, and room for all its tokens and one more of everybody.
  bool Fits(const Sequence& sequence) const;
  // It fits.
  void Admit(std::unique_ptr<Sequence> sequence);
  // Ends those that are cancelled or past their deadline, unless a step with them is under way.
  void EndUnwanted();
  // Takes all out, the oldest first. No step is under way.
  std::vector<std::unique_ptr<Sequence>> TakeAll();
  // Those that were set back for lack of pages since the last call, the oldest first.
  std::vector<std::unique_ptr<Sequence>> TakeSetBack();
  bool empty() const { return active_.empty(); }

  // --- Steps ---

  // Launches what can be, then waits for the oldest step and hands out its tokens. Errors: of a
  // step; none is under way then, and all can go on but those that a second Advance would fail for
  // again: EndFailed.
  absl::Status Advance();
  // Ends the sequences of the step that failed last with its error.
  void EndFailed(const absl::Status& status);

  void Describe(ServingState& state) const;
  // What every process and transport counted: locks and texts, too dear for every step.
  void DescribeSession(ServingState& state) const;

 private:
  struct Share {
    Sequence* sequence = nullptr;
    int64_t begin = 0;  // position of its first token
    int64_t tokens = 0;
    bool output = false;
  };
  struct Step {
    std::vector<Share> shares;
    bool logits = false;
    bool hidden = false;  // of embeddings: every token is an output
    Clock::TimePoint launched;
  };

  absl::Status LaunchSteps();
  // Candidates are too few for what its sampler changes, or there are none.
  bool NeedsAllLogits(const Sequence& sequence) const;
  // Of those that want embeddings, or of the others.
  BatchChoice Choose(bool embeddings);
  Step MakeStep(const BatchChoice& choice, bool embeddings) const;
  // The next step of either kind; without shares there is nothing to do, or no room.
  Step NextStep(bool& short_of_pages);
  absl::Status Launch(Step step);
  // The youngest sequence gives up its pages, or the only one ends.
  void MakeRoom();
  // `waited`: since when there is nothing to do but to wait.
  absl::Status CollectStep(Clock::TimePoint waited);
  // Chooses the next token of each output of the step, a row for each.
  void SampleLogits(const Step& step, absl::Span<float> logits);
  void SampleCandidates(const Step& step, absl::Span<const CandidateRow> rows);
  void TakeRow(Sequence& sequence, absl::StatusOr<std::optional<int32_t>> token);
  void TakeHidden(const Step& step, absl::Span<const float> states);
  // Others may begin with what it has read.
  void Publish(const Share& share);
  // None is under way; sequences stand where the runner has them.
  void DropSteps();
  void End(Sequence& sequence, const absl::Status& status);
  std::unique_ptr<Sequence> Remove(Sequence& sequence);

  ServingSession& session_;
  ModelRunner& runner_;
  const bool reuse_prefixes_;
  const Clock& clock_;
  ServingCounters& counters_;
  std::vector<std::unique_ptr<Sequence>> active_;  // in order of admission
  std::vector<std::unique_ptr<Sequence>> set_back_;
  std::vector<Sequence*> failed_;  // of active_: those of the step that failed
  std::vector<int32_t> free_slots_;
  std::deque<Step> steps_;        // under way
  int64_t first_ = 0;             // where the next batch begins
  bool embeddings_next_ = false;  // the two kinds take turns where both are there
};

}  // namespace weft
