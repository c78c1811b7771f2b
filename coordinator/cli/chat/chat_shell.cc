#include "coordinator/cli/chat/chat_shell.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"
#include "coordinator/cli/chat/chat_input.h"
#include "coordinator/cli/chat/terminal_text.h"
#include "coordinator/http/choice_streams.h"

namespace weft {
namespace {

// How often Ctrl-C is looked for while the model is silent.
constexpr std::chrono::milliseconds kGlance{50};
constexpr size_t kShownBytes = 60;
constexpr char kDim[] = "\x1b[2m";
constexpr char kPlain[] = "\x1b[0m";
constexpr char kHelp[] =
    "/reset       begin a new conversation\n"
    "/save FILE   write the conversation as JSON\n"
    "/help        this list\n"
    "/quit        leave; so does Ctrl-D\n"
    "Ctrl-C stops an answer. A line that ends with \\ goes on in the next one; // begins a "
    "message\n"
    "with a slash.\n";

std::string ReasonText(const GenerationSummary& summary, bool stopped) {
  if (stopped) return "stopped";
  const bool whole =
      summary.reason == FinishReason::kEndOfText || summary.reason == FinishReason::kStopText;
  return whole ? "stop" : "length";
}

}  // namespace

ChatShell::ChatShell(ChatShellOptions options, Parts parts, const Clock& clock, Logger& logger)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      clock_(clock),
      logger_(logger),
      conversation_(options_.system) {}

absl::Status ChatShell::Run() {
  bool warned = false;  // that one more Ctrl-C ends it
  for (bool done = false; !done;) {
    ASSIGN_OR_RETURN(const InputLine line, ReadLine());
    if (line.kind == InputLine::Kind::kEnd) break;
    if (line.kind == InputLine::Kind::kInterrupt) {
      if (!options_.interactive) return absl::CancelledError("interrupted");
      if (warned && line.text.empty()) break;
      warned = line.text.empty();
      if (warned) RETURN_IF_ERROR(parts_.print("Ctrl-C once more, or Ctrl-D, leaves.\n"));
      continue;
    }
    warned = false;
    RETURN_IF_ERROR(Act(line.text, done));
  }
  return absl::OkStatus();
}

absl::StatusOr<InputLine> ChatShell::ReadLine() {
  ASSIGN_OR_RETURN(InputLine line, parts_.reader->Read("> "));
  while (options_.interactive && line.kind == InputLine::Kind::kLine && line.text.ends_with('\\')) {
    ASSIGN_OR_RETURN(InputLine more, parts_.reader->Read(". "));
    if (more.kind == InputLine::Kind::kInterrupt) {
      // What was typed before is given up, too.
      return InputLine{more.kind, absl::StrCat(line.text, more.text)};
    }
    if (more.kind == InputLine::Kind::kEnd) return more;
    line.text.back() = '\n';
    line.text += more.text;
  }
  return line;
}

absl::Status ChatShell::Act(const std::string& line, bool& done) {
  const ChatInput input = ParseChatInput(line);
  switch (input.kind) {
    case ChatInput::Kind::kEmpty:
      return absl::OkStatus();
    case ChatInput::Kind::kMessage:
      return Report(Reply(input.text));
    case ChatInput::Kind::kReset:
      conversation_.Reset();
      return options_.interactive ? parts_.print("A new conversation.\n") : absl::OkStatus();
    case ChatInput::Kind::kSave: {
      if (input.text.empty()) return Report(absl::InvalidArgumentError("/save: name a file"));
      const absl::Status saved = conversation_.Save(input.text, options_.model);
      if (!saved.ok() || !options_.interactive) return Report(saved);
      return parts_.print(absl::StrCat("Saved as ", TerminalText(input.text), ".\n"));
    }
    case ChatInput::Kind::kHelp:
      return parts_.print(kHelp);
    case ChatInput::Kind::kQuit:
      done = true;
      return absl::OkStatus();
    case ChatInput::Kind::kUnknown:
      break;
  }
  return Report(absl::InvalidArgumentError(
      absl::StrCat("there is no command ", EscapedText(input.text, kShownBytes), "; see /help")));
}

absl::Status ChatShell::Report(const absl::Status& status) {
  if (status.ok() || !options_.interactive) return status;
  logger_.Error(StdView(status.message()));
  return absl::OkStatus();
}

absl::Status ChatShell::Reply(const std::string& message) {
  conversation_.AddUser(message);
  absl::StatusOr<Answer> answer = Generate();
  if (!answer.ok()) {
    conversation_.DropLast();
    return answer.status();
  }
  if (options_.json) {
    RETURN_IF_ERROR(PrintJson(*answer));
  } else {
    RETURN_IF_ERROR(parts_.print(answer->stopped ? " [stopped]\n" : "\n"));
  }
  if (answer->content.empty() && answer->stopped) {
    conversation_.DropLast();
  } else {
    conversation_.AddAnswer(answer->content, answer->reasoning);
  }
  if (answer->stopped && !options_.interactive) return absl::CancelledError("interrupted");
  return absl::OkStatus();
}

absl::StatusOr<ChatShell::Answer> ChatShell::Generate() {
  ChatBody body;
  body.messages = conversation_.messages();
  ASSIGN_OR_RETURN(ChatPrompt prompt, parts_.format->Prompt(body));
  GenerationRequest request;
  request.prompt = std::move(prompt.tokens);
  request.sampler = options_.sampler;
  request.sampler.seed += answers_++;
  request.max_tokens = options_.most_tokens;
  request.stop = std::move(prompt.stop);
  request.special_tokens = prompt.special_tokens;
  const std::unique_ptr<ReplyReader> reader = prompt.make_reader();
  ASSIGN_OR_RETURN(std::shared_ptr<GenerationStream> stream,
                   parts_.engine->Submit(std::move(request)));
  ChoiceStreams streams({std::move(stream)}, clock_);  // cancels what is not over
  Answer answer;
  while (true) {
    absl::StatusOr<std::optional<ChoiceEvent>> event = streams.Next(clock_.Now() + kGlance);
    if (parts_.interrupt->Take()) {
      answer.stopped = true;
      break;
    }
    if (!event.ok() && streams.TimedOut()) continue;
    if (!event.ok()) {
      RETURN_IF_ERROR(EndThoughts());
      return event.status();
    }
    if (!*event || !(*event)->piece) break;
    RETURN_IF_ERROR(Take(reader->Append((*event)->piece->text), answer));
  }
  if (!answer.stopped) answer.summary = streams.summary(0);
  RETURN_IF_ERROR(Take(reader->Finish(), answer));
  RETURN_IF_ERROR(EndThoughts());
  return answer;
}

absl::Status ChatShell::Take(const std::vector<ReplyEvent>& events, Answer& answer) {
  for (const ReplyEvent& event : events) {
    if (event.kind == ReplyEvent::Kind::kReasoning) {
      answer.reasoning += event.text;
      if (options_.json || !options_.shows_thoughts) continue;
      const bool begins = !std::exchange(in_thoughts_, true);
      RETURN_IF_ERROR(parts_.print(absl::StrCat(begins ? kDim : "", TerminalText(event.text))));
    } else if (event.kind == ReplyEvent::Kind::kContent) {
      answer.content += event.text;
      if (options_.json) continue;
      if (in_thoughts_) {
        RETURN_IF_ERROR(EndThoughts());
        RETURN_IF_ERROR(parts_.print("\n"));
      }
      RETURN_IF_ERROR(parts_.print(TerminalText(event.text)));
    }
  }
  return absl::OkStatus();
}

absl::Status ChatShell::EndThoughts() {
  return std::exchange(in_thoughts_, false) ? parts_.print(kPlain) : absl::OkStatus();
}

absl::Status ChatShell::PrintJson(const Answer& answer) {
  Json json = {{"content", answer.content}};
  if (!answer.reasoning.empty()) json["reasoning_content"] = answer.reasoning;
  json["finish_reason"] = ReasonText(answer.summary, answer.stopped);
  json["prompt_tokens"] = answer.summary.prompt_tokens;
  json["reused_tokens"] = answer.summary.reused_tokens;
  json["generated_tokens"] = answer.summary.generated_tokens;
  json["first_token_seconds"] = answer.summary.first_token_seconds;
  json["total_seconds"] = answer.summary.total_seconds;
  // In ASCII: some control characters would stay as they are.
  return parts_.print(json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace weft
