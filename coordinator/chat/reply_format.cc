#include "coordinator/chat/reply_format.h"

namespace weft {
namespace {

class PlainParser final : public FormatParser {
 public:
  void Consume(std::string* text, bool, ReplySink* sink) override {
    sink->Content(*text);
    text->clear();
  }
};

}  // namespace

ReplyFormat DetectReplyFormat(std::string_view source) {
  const auto has = [&](std::string_view words) { return source.find(words) != source.npos; };
  ReplyFormat format;
  if (has("<|channel|>")) {
    format.calls = CallFormat::kHarmony;
    return format;
  }
  if (has("<\xEF\xBD\x9Ctool\xE2\x96\x81"
          "call")) {
    format.calls = CallFormat::kDeepSeek;
    format.fenced = has("```json");
  } else if (has("<tool_call>") || !has("tool_calls")) {
    format.calls = CallFormat::kHermes;
  } else if (has("<|python_tag|>") || (has("<|eot_id|>") && has("\"parameters\""))) {
    format.calls = CallFormat::kLlama;
  }
  format.think = has("<think>") || has("</think>");
  return format;
}

std::unique_ptr<FormatParser> MakePlainParser() { return std::make_unique<PlainParser>(); }

}  // namespace weft
