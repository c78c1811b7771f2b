// The formats that models answer in.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "coordinator/chat/reply_sink.h"

namespace weft {

enum class CallFormat {
  kNone,      // everything is content
  kHermes,    // <tool_call>{"name": ..., "arguments": {...}}</tool_call>: Hermes, Qwen
  kLlama,     // the reply is {"name": ..., "parameters": {...}}, perhaps after <|python_tag|>
  kHarmony,   // <|channel|>analysis<|message|>...: gpt-oss; thoughts are channels here too
  kDeepSeek,  // tool-calls-begin, tool-call-begin, ... with full-width bars
};

struct ReplyFormat {
  CallFormat calls = CallFormat::kNone;
  bool think = false;   // thoughts come first, between <think> and </think>
  bool fenced = false;  // kDeepSeek: arguments as V3 and R1 write them, else as V3.1

  bool operator==(const ReplyFormat&) const = default;
};

// The format that a chat template of this source asks for. Where it says nothing of calls,
// ChatTemplate describes tools in the way of kHermes.
ReplyFormat DetectReplyFormat(std::string_view template_source);

// Takes one format apart. Text comes in whole characters.
class FormatParser {
 public:
  virtual ~FormatParser() = default;
  // Takes from the front of `text` what is understood; the rest comes again with more behind it.
  // With `final` nothing follows, and it takes all.
  virtual void Consume(std::string* text, bool final, ReplySink* sink) = 0;
};

std::unique_ptr<FormatParser> MakePlainParser();
std::unique_ptr<FormatParser> MakeHermesParser();
std::unique_ptr<FormatParser> MakeLlamaParser();
std::unique_ptr<FormatParser> MakeHarmonyParser();
std::unique_ptr<FormatParser> MakeDeepSeekParser();
// Thoughts first, the rest to `inner`. `opened`: the prompt ended with <think>.
std::unique_ptr<FormatParser> MakeThinkParser(std::unique_ptr<FormatParser> inner, bool opened);

}  // namespace weft
