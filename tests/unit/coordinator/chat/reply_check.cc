#include "tests/unit/coordinator/chat/reply_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/check.h"

namespace weft {
namespace {

constexpr size_t kOptionBytes = 2;
constexpr int kCallFormats = 5;

class Transcript {
 public:
  void Add(const std::vector<ReplyEvent>& events) {
    for (const ReplyEvent& event : events) {
      WEFT_CHECK(!ended_);
      WEFT_CHECK(event.text.empty() == (event.kind == ReplyEvent::Kind::kEnd));
      Open(event);
      text_ += event.text;
    }
  }
  const std::string& text() const { return text_; }

 private:
  void Open(const ReplyEvent& event) {
    using enum ReplyEvent::Kind;
    const bool same = open_ && event.kind == kind_ && event.kind != kCallBegin;
    if (same) return;
    if (event.kind == kCallArguments) {
      WEFT_CHECK(kind_ == kCallBegin);
      text_ += "(";
    } else {
      if (open_) text_ += ")";
      if (event.kind == kContent) text_ += "C(";
      if (event.kind == kReasoning) text_ += "R(";
      if (event.kind == kCallBegin) absl::StrAppend(&text_, "F", event.index, ":");
      if (event.kind == kEnd) text_ += ".";
    }
    ended_ = event.kind == kEnd;
    open_ = !ended_;
    kind_ = event.kind;
  }

  std::string text_;
  bool open_ = false;
  bool ended_ = false;
  ReplyEvent::Kind kind_ = ReplyEvent::Kind::kEnd;
};

}  // namespace

std::string ReplyTranscript(const ReplyOptions& options, std::string_view text,
                            const std::vector<size_t>& cuts) {
  ReplyParser parser(options);
  Transcript transcript;
  size_t start = 0;
  for (const size_t cut : cuts) {
    transcript.Add(parser.Append(text.substr(start, cut - start)));
    start = cut;
  }
  transcript.Add(parser.Append(text.substr(start)));
  transcript.Add(parser.Finish());
  return transcript.text();
}

void CheckReply(std::string_view bytes) {
  if (bytes.size() < kOptionBytes) return;
  const auto first = static_cast<uint8_t>(bytes[0]);
  const size_t step = 1 + static_cast<uint8_t>(bytes[1]);
  const std::string_view text = bytes.substr(kOptionBytes);
  ReplyOptions options;
  options.format.calls = static_cast<CallFormat>(first % kCallFormats);
  options.format.think = (first & 0x80) != 0;
  options.thoughts_opened = (first & 0x40) != 0;
  options.with_tools = (first & 0x20) == 0;
  const std::string whole = ReplyTranscript(options, text);
  std::vector<size_t> cuts;
  for (size_t at = step; at < text.size(); at += step) cuts.push_back(at);
  WEFT_CHECK(ReplyTranscript(options, text, cuts) == whole);
  if (options.format.calls != CallFormat::kNone || options.format.think || text.empty() ||
      options.thoughts_opened) {
    return;
  }
  WEFT_CHECK(whole == absl::StrCat("C(", AbslView(text), ")."));
}

}  // namespace weft
