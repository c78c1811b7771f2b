#include "coordinator/serving/batch_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/graph/op.h"

namespace weft {
namespace {

int64_t PagesFor(int64_t tokens) { return CeilDivide(tokens, kPageTokens); }

// Tokens that fit its last page still.
int64_t RoomInPages(int64_t computed) { return PagesFor(computed) * kPageTokens - computed; }

}  // namespace

BatchEngine::BatchEngine(ServingSession& session, bool reuse_prefixes, const Clock& clock,
                         ServingCounters& counters)
    : session_(session),
      runner_(session.runner()),
      reuse_prefixes_(reuse_prefixes),
      clock_(clock),
      counters_(counters) {
  for (int64_t slot = runner_.options().sequences - 1; slot >= 0; --slot) {
    free_slots_.push_back(static_cast<int32_t>(slot));
  }
}

absl::Status BatchEngine::Probe() {
  const BatchToken token = {0, 0, 0, true};
  RETURN_IF_ERROR(runner_.Step({&token, 1}).status());
  runner_.Truncate(0, 0);
  return absl::OkStatus();
}

// --- Sequences ---

bool BatchEngine::Fits(const Sequence& sequence) const {
  const auto others = static_cast<int64_t>(active_.size());
  const auto tokens = static_cast<int64_t>(sequence.tokens().size());
  const int64_t pages = PagesFor(std::min(tokens + 1, runner_.options().context));
  return !free_slots_.empty() && pages + others <= runner_.pages().free_pages();
}

void BatchEngine::Admit(std::unique_ptr<Sequence> sequence) {
  sequence->slot = free_slots_.back();
  free_slots_.pop_back();
  const int64_t reused =
      // Embeddings want the states of all their tokens.
      reuse_prefixes_ && !sequence->embeds() ? runner_.Adopt(sequence->slot, sequence->tokens())
                                             : int64_t{0};
  if (sequence->Admitted(reused)) {
    counters_.prompt_tokens += sequence->summary().prompt_tokens;
    counters_.reused_tokens += reused;
    counters_.queue.Add(sequence->summary().queue_seconds);
  }
  active_.push_back(std::move(sequence));
}

std::unique_ptr<Sequence> BatchEngine::Remove(Sequence& sequence) {
  const auto found = std::find_if(active_.begin(), active_.end(),
                                  [&](const auto& other) { return other.get() == &sequence; });
  std::unique_ptr<Sequence> removed = std::move(*found);
  active_.erase(found);
  removed->Deliver();
  runner_.Truncate(removed->slot, 0);
  free_slots_.push_back(removed->slot);
  removed->slot = -1;
  removed->computed = 0;
  return removed;
}

void BatchEngine::End(Sequence& sequence, const absl::Status& status) {
  counters_.CountEnd(status);
  Remove(sequence)->Finish(status);
}

void BatchEngine::EndUnwanted() {
  const Clock::TimePoint now = clock_.Now();
  for (size_t i = active_.size(); i-- > 0;) {  // End takes it out
    Sequence& sequence = *active_[i];
    if (sequence.in_flight > 0) continue;
    const absl::Status unwanted = sequence.Unwanted(now);
    if (!unwanted.ok()) End(sequence, unwanted);
  }
}

std::vector<std::unique_ptr<Sequence>> BatchEngine::TakeAll() {
  std::vector<std::unique_ptr<Sequence>> taken;
  while (!active_.empty()) taken.push_back(Remove(*active_.front()));
  return taken;
}

std::vector<std::unique_ptr<Sequence>> BatchEngine::TakeSetBack() {
  std::reverse(set_back_.begin(), set_back_.end());
  return std::exchange(set_back_, {});
}

void BatchEngine::MakeRoom() {
  Sequence& youngest = *active_.back();
  if (active_.size() == 1) {
    youngest.EndForLackOfRoom();
    End(youngest, absl::OkStatus());
    return;
  }
  ++counters_.preempted;
  set_back_.push_back(Remove(youngest));
}

// --- Steps ---

absl::Status BatchEngine::Advance() {
  absl::Status status = LaunchSteps();
  const Clock::TimePoint launched = clock_.Now();
  // What the last step brought goes out while this one is computed: its readers, once they are
  // awake, want the processors.
  for (const auto& sequence : active_) sequence->Deliver();
  if (status.ok() && !steps_.empty()) status = CollectStep(launched);
  if (!status.ok()) DropSteps();
  return status;
}

absl::Status BatchEngine::LaunchSteps() {
  const int64_t most = std::min(runner_.max_in_flight(), session_.stages());
  while (static_cast<int64_t>(steps_.size()) < std::max<int64_t>(most, 1)) {
    bool short_of_pages = false;
    Step step = NextStep(short_of_pages);
    if (!step.shares.empty()) {
      RETURN_IF_ERROR(Launch(std::move(step)));
    } else if (short_of_pages && steps_.empty()) {
      MakeRoom();
    } else {
      break;
    }
  }
  return absl::OkStatus();
}

bool BatchEngine::NeedsAllLogits(const Sequence& sequence) const {
  const RunnerOptions& options = runner_.options();
  return options.candidates == 0 ||
         static_cast<int64_t>(sequence.ChangedIds().size()) > options.changed;
}

BatchEngine::Step BatchEngine::NextStep(bool& short_of_pages) {
  const auto embedding = std::count_if(active_.begin(), active_.end(),
                                       [](const auto& sequence) { return sequence->embeds(); });
  const bool both = embedding > 0 && embedding < std::ssize(active_);
  bool embeddings = embedding > 0;
  if (both) embeddings = std::exchange(embeddings_next_, !embeddings_next_);
  for (int tries = both ? 2 : 1; tries > 0; --tries, embeddings = !embeddings) {
    const BatchChoice choice = Choose(embeddings);
    if (!choice.shares.empty()) return MakeStep(choice, embeddings);
    short_of_pages = short_of_pages || choice.short_of_pages;
  }
  return {};
}

BatchChoice BatchEngine::Choose(bool embeddings) {
  std::vector<BatchCandidate> candidates;
  candidates.reserve(active_.size());
  for (const auto& sequence : active_) {
    const bool left_out = sequence->cancelled() || sequence->embeds() != embeddings;
    const int64_t remaining = left_out ? 0 : sequence->remaining();
    const bool logits =
        !embeddings && (sequence->wants_logits || (remaining == 1 && NeedsAllLogits(*sequence)));
    candidates.push_back({remaining, logits, RoomInPages(sequence->computed)});
  }
  const BatchLimits limits = {runner_.options().ubatch, runner_.pages().free_pages(), kPageTokens,
                              session_.stages()};
  return FormBatch(candidates, limits, first_++);
}

BatchEngine::Step BatchEngine::MakeStep(const BatchChoice& choice, bool embeddings) const {
  Step step;
  step.logits = choice.logits;
  step.hidden = embeddings;
  for (const BatchShare& chosen : choice.shares) {
    Sequence& sequence = *active_[chosen.candidate];
    Share share = {&sequence, sequence.computed, chosen.tokens,
                   chosen.tokens == sequence.remaining()};
    // The end of a prompt that needs all logits waits for a step that returns them. Of those with
    // one token to go FormBatch knows.
    const bool waits = share.output && share.tokens > 1 && !step.logits && !step.hidden;
    if (waits && NeedsAllLogits(sequence)) {
      share.output = false;
      --share.tokens;
    }
    step.shares.push_back(share);
  }
  return step;
}

absl::Status BatchEngine::Launch(Step step) {
  std::vector<BatchToken> batch;
  std::vector<std::vector<int32_t>> changed;
  for (const Share& share : step.shares) {
    Sequence& sequence = *share.sequence;
    for (int64_t i = 0; i < share.tokens; ++i) {
      const int64_t position = share.begin + i;
      batch.push_back({sequence.tokens()[position], position, sequence.slot,
                       step.hidden || (share.output && i + 1 == share.tokens)});
    }
    sequence.computed += share.tokens;
    ++sequence.in_flight;
    if (share.output && !step.logits && !step.hidden) changed.push_back(sequence.ChangedIds());
  }
  ++counters_.steps;
  counters_.step_tokens += static_cast<int64_t>(batch.size());
  counters_.batch_tokens.Add(static_cast<double>(batch.size()));
  counters_.batch_sequences.Add(static_cast<double>(step.shares.size()));
  step.launched = clock_.Now();
  const bool logits = step.logits, hidden = step.hidden;
  steps_.push_back(std::move(step));
  if (hidden) return runner_.LaunchForHidden(batch);
  return logits ? runner_.Launch(batch) : runner_.LaunchForCandidates(batch, changed);
}

absl::Status BatchEngine::CollectStep(Clock::TimePoint waited) {
  const bool logits = steps_.front().logits, hidden = steps_.front().hidden;
  std::vector<float> all_logits;  // or hidden states
  std::vector<CandidateRow> rows;
  if (logits || hidden) {
    ASSIGN_OR_RETURN(all_logits, runner_.Collect());
  } else {
    ASSIGN_OR_RETURN(rows, runner_.CollectCandidates());
  }
  counters_.waiting_seconds += SecondsSince(clock_, waited);
  const Step step = std::move(steps_.front());
  steps_.pop_front();
  counters_.step.Add(SecondsSince(clock_, step.launched));
  if (hidden) {
    TakeHidden(step, all_logits);
    return absl::OkStatus();
  }
  for (const Share& share : step.shares) {
    --share.sequence->in_flight;
    Publish(share);
  }
  const Clock::TimePoint sampling = clock_.Now();
  if (logits) {
    SampleLogits(step, absl::MakeSpan(all_logits));
  } else {
    SampleCandidates(step, rows);
  }
  counters_.sampling_seconds += SecondsSince(clock_, sampling);
  return absl::OkStatus();
}

void BatchEngine::SampleLogits(const Step& step, absl::Span<float> logits) {
  const auto n_vocab = static_cast<size_t>(runner_.n_vocab());
  for (const Share& share : step.shares) {
    if (!share.output) continue;
    ++counters_.logits_fetched;
    TakeRow(*share.sequence, share.sequence->Choose(logits.subspan(0, n_vocab)));
    logits.remove_prefix(n_vocab);
  }
}

void BatchEngine::SampleCandidates(const Step& step, absl::Span<const CandidateRow> rows) {
  for (const Share& share : step.shares) {
    if (!share.output) continue;
    TakeRow(*share.sequence, share.sequence->Choose(rows.front()));
    rows.remove_prefix(1);
  }
}

void BatchEngine::Publish(const Share& share) {
  if (!reuse_prefixes_) return;
  const std::vector<int32_t>& tokens = share.sequence->tokens();
  const int64_t known =
      std::min(share.begin + share.tokens, static_cast<int64_t>(tokens.size()) - 1);
  runner_.Publish(share.sequence->slot, absl::MakeSpan(tokens).subspan(0, known));
}

void BatchEngine::TakeHidden(const Step& step, absl::Span<const float> states) {
  const Hyperparameters& model = runner_.model().hyperparameters();
  const auto width = static_cast<size_t>(model.n_embd);
  for (const Share& share : step.shares) {
    Sequence& sequence = *share.sequence;
    --sequence.in_flight;
    Publish(share);
    const size_t words = static_cast<size_t>(share.tokens) * width;
    const absl::StatusOr<bool> over =
        sequence.TakeHidden(states.subspan(0, words), model.n_embd, model.pooling);
    states.remove_prefix(words);
    if (!over.ok() || *over) End(sequence, over.status());
  }
}

void BatchEngine::TakeRow(Sequence& sequence, absl::StatusOr<std::optional<int32_t>> token) {
  if (!token.ok()) return End(sequence, token.status());
  if (!*token) {
    sequence.wants_logits = true;
    sequence.computed = runner_.Truncate(sequence.slot, sequence.computed - 1);
    return;
  }
  const absl::StatusOr<bool> over = sequence.Accept(**token);
  ++counters_.generated_tokens;
  (sequence.summary().generated_tokens == 1 ? counters_.first_token : counters_.between_tokens)
      .Add(sequence.SecondsOfLastToken());
  if (!over.ok()) return End(sequence, over.status());
  if (!*over && static_cast<int64_t>(sequence.tokens().size()) > runner_.options().context) {
    sequence.EndForLackOfRoom();
    return End(sequence, absl::OkStatus());
  }
  if (*over) End(sequence, absl::OkStatus());
}

void BatchEngine::DropSteps() {
  failed_.clear();
  for (const Step& step : steps_) {
    for (const Share& share : step.shares) {
      if (&step == &steps_.front()) failed_.push_back(share.sequence);
      share.sequence->in_flight = 0;
      share.sequence->computed = std::min(share.sequence->computed, share.begin);
    }
  }
  steps_.clear();
}

void BatchEngine::EndFailed(const absl::Status& status) {
  for (Sequence* sequence : std::exchange(failed_, {})) End(*sequence, status);
}

void BatchEngine::DescribeSession(ServingState& state) const {
  state.runner = runner_.counters();
  state.memory = runner_.memory();
  state.transports = session_.transports();
  state.processes = session_.processes();
}

void BatchEngine::Describe(ServingState& state) const {
  state.active = static_cast<int64_t>(active_.size());
  state.slots = runner_.options().sequences;
  state.pages = runner_.page_count();
  state.pages_kept = runner_.pages().kept_pages();
  state.pages_used = state.pages - runner_.pages().free_pages();
}

}  // namespace weft
