// Messages with channels: <|start|>assistant<|channel|>NAME<|message|>TEXT<|end|>. The prompt ends
// behind <|start|>assistant. Channel analysis holds thoughts, final the answer; a message with
// to=functions.NAME is a call with JSON as its text.
#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "coordinator/chat/marker_scan.h"
#include "coordinator/chat/reply_calls.h"
#include "coordinator/chat/reply_format.h"
#include "coordinator/chat/reply_markers.h"

namespace weft {
namespace {

constexpr std::string_view kMessage[] = {marker::kMessage};
// What a header begins with, behind the prompt or elsewhere.
constexpr std::string_view kHeaders[] = {marker::kChannel, marker::kStart};
constexpr std::string_view kEnds[] = {marker::kEnd, marker::kReturn, marker::kCall, marker::kStart,
                                      marker::kChannel};
constexpr std::string_view kFunctions = "functions.";
constexpr size_t kMaxHeaderBytes = 512;
constexpr size_t kMaxSpace = 64;     // before the first header
constexpr size_t kFirstOpening = 3;  // of kEnds: those that also begin the next header

// The word behind `mark` in a header.
std::string_view WordAfter(std::string_view header, std::string_view mark) {
  const size_t found = header.find(mark);
  if (found == std::string_view::npos) return "";
  header.remove_prefix(found + mark.size());
  return header.substr(0, header.find_first_of(" \t\r\n<"));
}

class HarmonyParser final : public FormatParser {
 public:
  void Consume(std::string* text, bool final, ReplySink* sink) override {
    while (Step(text, final, sink)) {
    }
  }

 private:
  enum class State { kStart, kHeader, kText, kThoughts, kCall, kBetween };

  bool Step(std::string* text, bool final, ReplySink* sink) {
    switch (state_) {
      case State::kStart:
        return Start(*text, final);
      case State::kHeader:
        return TakeHeader(text, final, sink);
      case State::kText:
      case State::kThoughts:
        return TakeText(text, final, sink);
      case State::kCall:
        return TakeCall(text, final, sink);
      case State::kBetween:
        return SkipBetween(text, final);
    }
    return false;
  }

  // A reply that begins with no header is text.
  bool Start(std::string_view text, bool final) {
    const size_t begin = std::min(text.find_first_not_of(' '), text.size());
    if (begin > kMaxSpace) {
      state_ = State::kText;
      return true;
    }
    const std::string_view rest = text.substr(begin);
    bool may_be = false;
    for (const std::string_view opening :
         {kHeaders[0], kHeaders[1], kMessage[0], std::string_view("to=")}) {
      if (rest.starts_with(opening)) {
        state_ = State::kHeader;
        return true;
      }
      may_be = may_be || MayBe(rest, opening);
    }
    if (may_be && !final) return false;
    state_ = State::kText;
    return true;
  }

  bool TakeHeader(std::string* text, bool final, ReplySink* sink) {
    const auto hit = FindMarker(*text, kMessage);
    const size_t end = hit.has_value() ? hit->position + kMessage[0].size() : text->size();
    if (end > kMaxHeaderBytes || (!hit.has_value() && final)) {
      // No header after all. Its first character is taken out of the way of the search for markers.
      const size_t first = text->empty() ? 0 : 1;
      sink->Content(text->substr(0, first));
      text->erase(0, first);
      state_ = State::kText;
      return true;
    }
    if (!hit.has_value()) return false;
    header_ = text->substr(0, end);
    text->erase(0, end);
    const std::string_view recipient = WordAfter(header_, "to=");
    const std::string_view channel = WordAfter(header_, marker::kChannel);
    name_ = recipient.starts_with(kFunctions) ? recipient.substr(kFunctions.size()) : "";
    scan_.Reset();
    if (!name_.empty()) {
      state_ = State::kCall;
    } else if (!recipient.empty() && recipient != "assistant" && recipient != "user") {
      // A tool that nobody gave it: nothing is lost if it stays text.
      sink->Content(header_);
      state_ = State::kText;
    } else {
      state_ = channel == "analysis" ? State::kThoughts : State::kText;
    }
    return true;
  }

  void EndMessage(std::string* text, size_t position, size_t index) {
    text->erase(0, position + (index < kFirstOpening ? kEnds[index].size() : 0));
    state_ = index < kFirstOpening ? State::kBetween : State::kHeader;
  }

  bool TakeText(std::string* text, bool final, ReplySink* sink) {
    const auto hit = FindMarker(*text, kEnds);
    const size_t size = hit.has_value() ? hit->position
                        : final         ? text->size()
                                        : BytesBeforeMarker(*text, kEnds);
    const std::string_view part = std::string_view(*text).substr(0, size);
    if (state_ == State::kThoughts) {
      sink->Reasoning(part);
    } else {
      sink->Content(part);
    }
    if (hit.has_value()) {
      EndMessage(text, hit->position, hit->index);
      return true;
    }
    text->erase(0, size);
    return false;
  }

  bool TakeCall(std::string* text, bool final, ReplySink* sink) {
    CallScan::Result result = scan_.UntilMarkerOutsideStrings(*text, kEnds);
    if (result.state == CallScan::State::kOpen) {
      if (!final) return false;
      // Quotes that nobody closed hide no marker.
      scan_.Reset();
      result = scan_.UntilMarker(*text, kEnds);
    }
    if (result.state == CallScan::State::kOpen) {
      result = {CallScan::State::kClosed, text->size(), text->size(), std::size(kEnds)};
    }
    const std::string body = text->substr(0, result.body);
    const auto call = result.state == CallScan::State::kClosed
                          ? MakeCall(name_, body.empty() ? "{}" : body)
                          : std::nullopt;
    if (call.has_value()) {
      sink->Call(call->name, call->arguments);
    } else {
      sink->Content(absl::StrCat(header_, body));
    }
    if (result.state == CallScan::State::kTooLong) {
      text->erase(0, result.total);
      state_ = State::kText;
    } else if (result.marker < std::size(kEnds)) {
      EndMessage(text, result.body, result.marker);
    } else {
      text->clear();
      state_ = State::kBetween;
    }
    return true;
  }

  // Between messages stands white space at most; other text is text.
  bool SkipBetween(std::string* text, bool final) {
    text->erase(0, std::min(text->find_first_not_of(" \t\r\n"), text->size()));
    if (text->empty()) return false;
    for (const std::string_view opening : kHeaders) {
      if (text->starts_with(opening)) {
        state_ = State::kHeader;
        return true;
      }
      if (!final && MayBe(*text, opening)) return false;
    }
    state_ = State::kText;
    return true;
  }

  State state_ = State::kStart;
  std::string header_;
  std::string name_;  // of the function called
  CallScan scan_;
};

}  // namespace

std::unique_ptr<FormatParser> MakeHarmonyParser() { return std::make_unique<HarmonyParser>(); }

}  // namespace weft
