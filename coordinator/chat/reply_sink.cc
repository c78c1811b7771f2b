#include "coordinator/chat/reply_sink.h"

#include <algorithm>

namespace weft {
namespace {

constexpr size_t kMaxHeldSpace = 1024;
constexpr std::string_view kSpace = " \t\r\n";

}  // namespace

void ReplySink::Emit(ReplyEvent::Kind kind, std::string_view text, int index) {
  if (text.empty() && kind != ReplyEvent::Kind::kEnd) return;
  const bool joins = !events_.empty() && events_.back().kind == kind &&
                     (kind == ReplyEvent::Kind::kContent || kind == ReplyEvent::Kind::kReasoning);
  if (joins) {
    events_.back().text += text;
  } else {
    events_.push_back({kind, std::string(text), index});
  }
}

void ReplySink::Add(Stretch* stretch, ReplyEvent::Kind kind, std::string_view text) {
  if (stretch->at_start) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    if (text.empty()) return;
    stretch->at_start = false;
  }
  const size_t last = text.find_last_not_of(kSpace);
  if (last != std::string_view::npos) {
    Emit(kind, std::exchange(stretch->held, ""));
    Emit(kind, text.substr(0, last + 1));
    text.remove_prefix(last + 1);
    stretch->long_run = false;
  }
  stretch->held += text;
  if (stretch->long_run || stretch->held.size() > kMaxHeldSpace) {
    Emit(kind, std::exchange(stretch->held, ""));
    stretch->long_run = true;
  }
}

void ReplySink::Content(std::string_view text) { Add(&content_, ReplyEvent::Kind::kContent, text); }

void ReplySink::Reasoning(std::string_view text) {
  Add(&reasoning_, ReplyEvent::Kind::kReasoning, text);
}

void ReplySink::EndThoughts() {
  reasoning_ = {};
  content_.at_start = true;
}

void ReplySink::Call(std::string_view name, std::string_view arguments) {
  EndThoughts();
  content_ = {};
  Emit(ReplyEvent::Kind::kCallBegin, name, calls_);
  Emit(ReplyEvent::Kind::kCallArguments, arguments, calls_);
  ++calls_;
}

void ReplySink::End() {
  Emit(ReplyEvent::Kind::kContent, std::exchange(content_.held, ""));
  Emit(ReplyEvent::Kind::kEnd, "");
}

}  // namespace weft
