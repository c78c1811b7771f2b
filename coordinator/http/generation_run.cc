#include "coordinator/http/generation_run.h"

#include <chrono>
#include <utility>

#include "common/base/status_macros.h"
#include "coordinator/http/api_error.h"
#include "coordinator/http/reply_json.h"

namespace weft {
namespace {

// Between signs of life of a stream whose prompt is being read. Proxies give up after 30 s or more.
constexpr std::chrono::seconds kKeepAlive{10};

// What outlives the handler where the reply is streamed.
struct Run {
  Run(std::vector<std::shared_ptr<GenerationStream>> started, const Clock& its_clock,
      Clock::TimePoint its_deadline, std::unique_ptr<ReplyWording> its_wording)
      : streams(std::move(started), its_clock),
        clock(its_clock),
        deadline(its_deadline),
        wording(std::move(its_wording)) {}

  // What comes next by `until` or by the deadline, which the engine itself sees between steps only.
  absl::StatusOr<std::optional<ChoiceEvent>> Next(Clock::TimePoint until) {
    absl::StatusOr<std::optional<ChoiceEvent>> next = streams.Next(std::min(until, deadline));
    late = streams.TimedOut() && clock.Now() >= deadline;
    if (late) return absl::DeadlineExceededError("the request was not finished in time");
    return next;
  }

  ChoiceStreams streams;
  const Clock& clock;
  const Clock::TimePoint deadline;
  bool late = false;  // it has passed
  std::unique_ptr<ReplyWording> wording;
  std::shared_ptr<void> watch;  // dies before the streams do
};

absl::StatusOr<std::vector<std::shared_ptr<GenerationStream>>> SubmitAll(
    TextEngine& engine, std::vector<GenerationRequest> requests) {
  std::vector<std::shared_ptr<GenerationStream>> streams;
  for (GenerationRequest& request : requests) {
    absl::StatusOr<std::shared_ptr<GenerationStream>> stream = engine.Submit(std::move(request));
    if (!stream.ok()) {
      for (const auto& other : streams) other->Cancel();
      return stream.status();
    }
    streams.push_back(*std::move(stream));
  }
  return streams;
}

absl::StatusOr<Json> CollectAll(Run& run) {
  while (true) {
    ASSIGN_OR_RETURN(std::optional<ChoiceEvent> event, run.Next(Clock::TimePoint::max()));
    if (!event) return run.wording->Whole(run.streams);
    if (event->piece) {
      run.wording->Piece(event->choice, std::move(*event->piece));
    } else {
      run.wording->End(event->choice, run.streams.summary(event->choice));
    }
  }
}

bool WriteAll(SseWriter& writer, const std::vector<Json>& chunks) {
  for (const Json& chunk : chunks) {
    if (!writer.Event(chunk)) return false;
  }
  return true;
}

// Until all is written, an error ended it, or nobody reads any longer.
void StreamAll(Run& run, bool include_usage, ByteSink& sink) {
  SseWriter writer(sink);
  bool reads = WriteAll(writer, run.wording->Begin());
  while (reads) {
    absl::StatusOr<std::optional<ChoiceEvent>> next = run.Next(run.clock.Now() + kKeepAlive);
    if (!next.ok()) {
      if (run.streams.TimedOut() && !run.late) {
        reads = writer.KeepAlive();
        continue;
      }
      writer.Event(ApiErrorJson(ApiErrorOf(next.status())));
      return;
    }
    std::optional<ChoiceEvent> event = *std::move(next);
    if (!event) break;
    const std::vector<Json> chunks =
        event->piece ? run.wording->Piece(event->choice, std::move(*event->piece))
                     : run.wording->End(event->choice, run.streams.summary(event->choice));
    reads = WriteAll(writer, chunks);
  }
  if (!reads) return;
  if (include_usage && !writer.Event(run.wording->Usage(run.streams))) return;
  writer.Done();
}

}  // namespace

HttpReply RunGeneration(const ServedModel& model, std::vector<GenerationRequest> requests,
                        std::unique_ptr<ReplyWording> wording, const ReplyForm& form,
                        ClientWatch& watch) {
  const Clock::TimePoint deadline =
      requests.empty() ? Clock::TimePoint::max() : requests.front().deadline;  // of all
  absl::StatusOr<std::vector<std::shared_ptr<GenerationStream>>> streams =
      SubmitAll(*model.engine, std::move(requests));
  if (!streams.ok()) return ErrorReply(streams.status());
  auto run = std::make_shared<Run>(*std::move(streams), *model.clock, deadline, std::move(wording));
  run->watch = watch.OnLeft([&all = run->streams] { all.Cancel(); });
  if (!form.stream) {
    const absl::StatusOr<Json> whole = CollectAll(*run);
    return whole.ok() ? JsonReply(*whole) : ErrorReply(whole.status());
  }
  HttpReply reply;
  reply.content_type = "text/event-stream";
  reply.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  reply.stream = [run, include_usage = form.include_usage](ByteSink& sink) {
    StreamAll(*run, include_usage, sink);
  };
  return reply;
}

}  // namespace weft
