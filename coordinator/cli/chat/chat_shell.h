// The dialogue of `weft chat`: lines in, answers out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "coordinator/cli/chat/conversation.h"
#include "coordinator/cli/chat/interrupt.h"
#include "coordinator/cli/chat/line_reader.h"
#include "coordinator/http/chat_format.h"
#include "coordinator/http/text_engine.h"
#include "coordinator/sampling/sampler_options.h"

namespace weft {

struct ChatShellOptions {
  std::string model;            // its name
  std::string system;           // prompt; empty: none
  SamplerOptions sampler;       // answer i has its seed + i
  int64_t most_tokens = -1;     // of an answer; -1: until it ends
  bool interactive = false;     // somebody types: errors are shown, and do not end it
  bool shows_thoughts = false;  // dimmed; else they are left out
  bool json = false;            // an object per answer instead of its text
};

class ChatShell {
 public:
  struct Parts {
    TextEngine* engine = nullptr;
    const ChatFormat* format = nullptr;
    LineReader* reader = nullptr;
    Interrupt* interrupt = nullptr;
    std::function<absl::Status(const std::string&)> print;  // to standard output
  };
  // All outlives it.
  ChatShell(ChatShellOptions options, Parts parts, const Clock& clock, Logger& logger);

  // Until the input ends. Errors: of reading and printing; unless it is interactive also those of
  // answers and commands, and CANCELLED after Ctrl-C.
  absl::Status Run();

 private:
  struct Answer {
    std::string content;
    std::string reasoning;
    bool stopped = false;  // by Ctrl-C
    GenerationSummary summary;
  };

  // The next line, with those that it says go on. Nothing: the user is done.
  absl::StatusOr<InputLine> ReadLine();
  absl::Status Act(const std::string& line, bool& done);
  absl::Status Reply(const std::string& message);
  absl::StatusOr<Answer> Generate();
  // Shows events as they come.
  absl::Status Take(const std::vector<ReplyEvent>& events, Answer& answer);
  absl::Status EndThoughts();
  absl::Status PrintJson(const Answer& answer);
  // Shows an error, or returns it.
  absl::Status Report(const absl::Status& status);

  const ChatShellOptions options_;
  const Parts parts_;
  const Clock& clock_;
  Logger& logger_;
  Conversation conversation_;
  uint64_t answers_ = 0;
  bool in_thoughts_ = false;
};

}  // namespace weft
