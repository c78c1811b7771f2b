#include "coordinator/chat/reply_parser.h"

#include <utility>

#include "coordinator/chat/marker_scan.h"

namespace weft {
namespace {

// Parsers erase what they took from the front of the text, so long pieces are cut.
constexpr size_t kStepBytes = 4096;

std::unique_ptr<FormatParser> MakeParser(const ReplyOptions& options) {
  const bool calls = options.with_tools;
  switch (options.format.calls) {
    case CallFormat::kHarmony:
      return MakeHarmonyParser();  // its channels are there without tools too
    case CallFormat::kHermes:
      return calls ? MakeHermesParser() : MakePlainParser();
    case CallFormat::kLlama:
      return calls ? MakeLlamaParser() : MakePlainParser();
    case CallFormat::kDeepSeek:
      return calls ? MakeDeepSeekParser() : MakePlainParser();
    case CallFormat::kNone:
      break;
  }
  return MakePlainParser();
}

}  // namespace

bool OpensThoughts(std::string_view prompt) {
  return prompt.substr(0, prompt.find_last_not_of(" \t\r\n") + 1).ends_with("<think>");
}

ReplyParser::ReplyParser(const ReplyOptions& options) : parser_(MakeParser(options)) {
  const bool harmony = options.format.calls == CallFormat::kHarmony;
  if (!harmony && (options.format.think || options.thoughts_opened)) {
    parser_ = MakeThinkParser(std::move(parser_), options.thoughts_opened);
  }
}

std::vector<ReplyEvent> ReplyParser::Append(std::string_view piece) {
  while (!piece.empty()) {
    const std::string_view step = piece.substr(0, kStepBytes);
    piece.remove_prefix(step.size());
    truncated_ += step;
    const size_t whole = WholeCharacters(truncated_);
    text_.append(truncated_, 0, whole);
    truncated_.erase(0, whole);
    parser_->Consume(&text_, /*final=*/false, &sink_);
  }
  return sink_.Take();
}

std::vector<ReplyEvent> ReplyParser::Finish() {
  text_ += std::exchange(truncated_, "");
  parser_->Consume(&text_, /*final=*/true, &sink_);
  sink_.End();
  return sink_.Take();
}

}  // namespace weft
