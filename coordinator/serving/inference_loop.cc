#include "coordinator/serving/inference_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/error_scope.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace weft {
namespace {

// How often an idle engine looks whether its workers are there.
constexpr std::chrono::milliseconds kIdlePeriod{250};
constexpr std::chrono::milliseconds kLastRetry{5000};
// How old what is shown of processes and transports may be while there is work.
constexpr std::chrono::milliseconds kDescribePeriod{100};

// What another session may well do without.
bool IsLoss(const absl::Status& status) {
  return ScopeOf(status) == ErrorScope::kWorker || absl::IsUnavailable(status) ||
         absl::IsDeadlineExceeded(status);
}

}  // namespace

InferenceLoop::InferenceLoop(OpenServingSession open, const Tokenizer& tokenizer,
                             const ServingOptions& options, const Clock& clock, Logger& logger)
    : open_(std::move(open)),
      tokenizer_(tokenizer),
      options_(options),
      clock_(clock),
      logger_(logger),
      inbox_(std::make_shared<ServingInbox>(options.most_waiting)),
      last_progress_(clock.Now()) {}

absl::StatusOr<std::unique_ptr<InferenceLoop>> InferenceLoop::Start(OpenServingSession open,
                                                                    const Tokenizer& tokenizer,
                                                                    const ServingOptions& options,
                                                                    const Clock& clock,
                                                                    Logger& logger) {
  std::unique_ptr<InferenceLoop> loop(
      new InferenceLoop(std::move(open), tokenizer, options, clock, logger));
  RETURN_IF_ERROR(loop->OpenSession());
  const ModelRunner& runner = loop->session_->runner();
  loop->context_ = runner.options().context;
  loop->n_vocab_ = runner.n_vocab();
  loop->cache_tokens_ = runner.page_count() * kPageTokens;
  loop->Show(absl::OkStatus());
  ASSIGN_OR_RETURN(loop->thread_, StartThread([loop = loop.get()] { loop->Run(); }));
  return loop;
}

InferenceLoop::~InferenceLoop() { Stop(); }

void InferenceLoop::Stop() {
  inbox_->Stop();
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::shared_ptr<GenerationStream>> InferenceLoop::Submit(GenerationRequest request) {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t room = context_ <= cache_tokens_ ? context_ : cache_tokens_ - 1;
  if (prompt == 0) return absl::InvalidArgumentError("prompt: there are no tokens");
  if (prompt > room) {
    return absl::InvalidArgumentError(absl::StrCat(
        "prompt: ", prompt, " tokens, the context holds ", room, "; raise -c or shorten it"));
  }
  for (const int32_t token : request.prompt) {
    if (token >= 0 && token < n_vocab_) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("prompt: token ", token, " is outside the vocabulary of ", n_vocab_));
  }
  if (request.max_tokens == 0 || request.max_tokens < -1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_tokens: ", request.max_tokens, ", want at least 1"));
  }
  RETURN_IF_ERROR(CheckSamplerOptions(request.sampler));
  auto stream = std::make_shared<GenerationStream>([inbox = inbox_] { inbox->Wake(); });
  RETURN_IF_ERROR(
      inbox_->Add(std::make_unique<Sequence>(std::move(request), stream, tokenizer_, clock_)));
  return stream;
}

// --- The thread ---

absl::Status InferenceLoop::OpenSession() {
  leaving_ = absl::OkStatus();
  ASSIGN_OR_RETURN(session_, open_());
  engine_ = std::make_unique<BatchEngine>(*session_, options_.reuse_prefixes, clock_, counters_);
  ++counters_.sessions_opened;
  return engine_->Probe();
}

void InferenceLoop::Run() {
  while (true) {
    const bool idle = engine_->empty() && resumed_.empty();
    if (idle ? !inbox_->Await(clock_.Now() + kIdlePeriod) : inbox_->stopped()) break;
    const Clock::TimePoint began = clock_.Now();
    if (idle) last_progress_ = began;
    const double waited = counters_.waiting_seconds;
    const absl::Status status = Turn();
    counters_.working_seconds += SecondsSince(clock_, began) - (counters_.waiting_seconds - waited);
    if (status.ok()) {
      last_progress_ = clock_.Now();
    } else {
      HandleFailure(status);
      if (engine_ == nullptr) break;  // stopped while the session was lost
    }
    Show(leaving_);
  }
  EndAll(absl::UnavailableError("the server is shutting down"));
}

absl::Status InferenceLoop::Turn() {
  EndUnwanted();
  leaving_ = session_->leaving();
  if (leaving_.ok()) {
    Admit();
  } else if (engine_->empty()) {
    return leaving_;  // a loss that was announced: nothing is cut off
  }
  if (engine_->empty()) return session_->lost();
  RETURN_IF_ERROR(engine_->Advance());
  for (std::unique_ptr<Sequence>& sequence : engine_->TakeSetBack()) {
    resumed_.push_back(std::move(sequence));
  }
  return absl::OkStatus();
}

void InferenceLoop::EndUnwanted() {
  const Clock::TimePoint now = clock_.Now();
  const auto unwanted = [now](const Sequence& sequence) { return !sequence.Unwanted(now).ok(); };
  std::vector<std::unique_ptr<Sequence>> ended = inbox_->TakeIf(unwanted);
  for (std::unique_ptr<Sequence>& sequence : resumed_) {
    if (unwanted(*sequence)) ended.push_back(std::move(sequence));
  }
  std::erase(resumed_, nullptr);
  for (const std::unique_ptr<Sequence>& sequence : ended) {
    End(*sequence, sequence->Unwanted(now));
  }
  if (engine_ != nullptr) engine_->EndUnwanted();
}

void InferenceLoop::End(Sequence& sequence, const absl::Status& status) {
  counters_.CountEnd(status);
  sequence.Finish(status);
}

void InferenceLoop::Admit() {
  // Those that were set back come first.
  while (!resumed_.empty()) {
    const bool fits = engine_->Fits(*resumed_.front());
    if (!fits && !engine_->empty()) return;
    std::unique_ptr<Sequence> sequence = std::move(resumed_.front());
    resumed_.pop_front();
    if (fits) {
      engine_->Admit(std::move(sequence));
    } else {
      // It filled the cache all by itself.
      sequence->EndForLackOfRoom();
      End(*sequence, absl::OkStatus());
    }
  }
  const auto fits = [this](const Sequence& sequence) { return engine_->Fits(sequence); };
  while (std::unique_ptr<Sequence> sequence = inbox_->Take(fits)) {
    engine_->Admit(std::move(sequence));
  }
}

void InferenceLoop::HandleFailure(const absl::Status& status) {
  const absl::Status lost = session_->lost();
  if (!lost.ok() || IsLoss(status)) return ReopenSession(lost.ok() ? status : lost);
  logger_.Error(StdView(absl::StrCat("a step failed: ", status.message())));
  engine_->EndFailed(status);
}

void InferenceLoop::ReopenSession(const absl::Status& reason) {
  ++counters_.sessions_lost;
  std::vector<std::unique_ptr<Sequence>> active = engine_->TakeAll();
  resumed_.insert(resumed_.begin(), std::make_move_iterator(active.begin()),
                  std::make_move_iterator(active.end()));
  engine_.reset();
  session_.reset();
  logger_.Warning(StdView(absl::StrCat("the session is lost: ", reason.message(), "; ",
                                       resumed_.size(), " requests wait for the next one")));
  absl::Status trouble = reason;
  for (std::chrono::milliseconds pause = options_.first_retry;;
       pause = std::min(2 * pause, kLastRetry)) {
    EndUnwanted();
    Show(trouble);
    if (inbox_->stopped()) return;
    const absl::Status opened = OpenSession();
    if (opened.ok()) break;
    engine_.reset();
    session_.reset();
    trouble = opened;
    logger_.Warning(StdView(absl::StrCat("no session yet: ", opened.message())));
    Show(trouble);
    const Clock::TimePoint next = clock_.Now() + pause;
    while (clock_.Now() < next && inbox_->Pause(next)) EndUnwanted();
    if (inbox_->stopped()) return;
  }
  logger_.Info(StdView(absl::StrCat("serving again, ", resumed_.size(), " requests go on")));
}

void InferenceLoop::EndAll(const absl::Status& status) {
  std::vector<std::unique_ptr<Sequence>> all = inbox_->TakeIf([](const Sequence&) { return true; });
  if (engine_ != nullptr) {
    for (std::unique_ptr<Sequence>& sequence : engine_->TakeAll()) {
      all.push_back(std::move(sequence));
    }
  }
  for (std::unique_ptr<Sequence>& sequence : resumed_) all.push_back(std::move(sequence));
  resumed_.clear();
  for (const std::unique_ptr<Sequence>& sequence : all) End(*sequence, status);
  Show(status);
}

void InferenceLoop::Show(const absl::Status& trouble) {
  const bool working = engine_ != nullptr && !engine_->empty();
  if (engine_ == nullptr) {
    shown_ = {};  // nothing of the session that is gone
    session_described_ = {};
  }
  shown_.counters = counters_;
  shown_.ready = trouble.ok() && engine_ != nullptr;
  shown_.trouble = std::string(trouble.message());
  shown_.last_progress = last_progress_;
  shown_.waiting = static_cast<int64_t>(resumed_.size());
  if (engine_ != nullptr) {
    engine_->Describe(shown_);
    const Clock::TimePoint now = clock_.Now();
    if (!working || now - session_described_ >= kDescribePeriod) {
      engine_->DescribeSession(shown_);
      session_described_ = now;
    }
  }
  inbox_->Show(shown_, !resumed_.empty() || working);
}

}  // namespace weft
