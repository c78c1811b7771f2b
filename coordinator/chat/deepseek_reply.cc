// Calls of DeepSeek, between markers with full-width bars. V3 and R1 write the type, a separator,
// the name and fenced JSON; V3.1 the name, the separator and JSON.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "coordinator/chat/marker_scan.h"
#include "coordinator/chat/reply_calls.h"
#include "coordinator/chat/reply_format.h"
#include "coordinator/chat/reply_markers.h"

namespace weft {
namespace {

constexpr std::string_view kOpen[] = {marker::kCallsBegin, marker::kCallBegin};
constexpr std::string_view kCallEnd[] = {marker::kCallEnd};
constexpr std::string_view kFence = "```";
constexpr std::string_view kSpace = " \t\r\n";

std::string_view Trim(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

// "function<sep>name\n```json\n{...}\n```" or "name<sep>{...}".
std::optional<FunctionCall> ParseBody(std::string_view body) {
  const size_t separator = body.find(marker::kSeparator);
  if (separator == std::string_view::npos) return std::nullopt;
  const std::string_view before = Trim(body.substr(0, separator));
  const std::string_view after = Trim(body.substr(separator + marker::kSeparator.size()));
  if (after.starts_with("{")) return MakeCall(before, after);
  const size_t line_end = after.find('\n');
  if (line_end == std::string_view::npos) return std::nullopt;
  std::string_view json = Trim(after.substr(line_end));
  if (json.starts_with(kFence) && json.ends_with(kFence)) {
    json.remove_prefix(std::min(json.find('\n'), json.size()));
    if (json.size() < kFence.size()) return std::nullopt;
    json.remove_suffix(kFence.size());
  }
  return MakeCall(Trim(after.substr(0, line_end)), Trim(json));
}

class DeepSeekParser final : public FormatParser {
 public:
  void Consume(std::string* text, bool final, ReplySink* sink) override {
    while (Step(text, final, sink)) {
    }
  }

 private:
  enum class State { kContent, kSection, kCall };

  bool Step(std::string* text, bool final, ReplySink* sink) {
    switch (state_) {
      case State::kContent:
        return TakeContent(text, final, sink);
      case State::kSection:
        return TakeSection(text, final, sink);
      case State::kCall:
        return TakeCall(text, final, sink);
    }
    return false;
  }

  bool TakeContent(std::string* text, bool final, ReplySink* sink) {
    if (const auto hit = FindMarker(*text, kOpen)) {
      sink->Content(std::string_view(*text).substr(0, hit->position));
      text->erase(0, hit->position);
      opening_ = "";
      state_ = State::kSection;
      return true;
    }
    const size_t safe = final ? text->size() : BytesBeforeMarker(*text, kOpen);
    sink->Content(std::string_view(*text).substr(0, safe));
    text->erase(0, safe);
    return false;
  }

  // Between the calls of a section: white space and markers only, else it is over.
  bool TakeSection(std::string* text, bool final, ReplySink* sink) {
    text->erase(0, std::min(text->find_first_not_of(kSpace), text->size()));
    if (text->starts_with(kOpen[0]) && opening_.empty()) {
      opening_ = kOpen[0];
      text->erase(0, kOpen[0].size());
      return true;
    }
    if (text->starts_with(kOpen[1])) {
      text->erase(0, kOpen[1].size());
      scan_.Reset();
      state_ = State::kCall;
      return true;
    }
    if (text->starts_with(marker::kCallsEnd)) {
      text->erase(0, marker::kCallsEnd.size());
    } else if (!final && (MayBe(*text, kOpen[0]) || MayBe(*text, kOpen[1]) ||
                          MayBe(*text, marker::kCallsEnd))) {
      return false;
    } else if (!called_) {
      sink->Content(opening_);
    }
    called_ = false;
    state_ = State::kContent;
    return true;
  }

  bool TakeCall(std::string* text, bool final, ReplySink* sink) {
    CallScan::Result result = scan_.UntilMarker(*text, kCallEnd);
    if (result.state == CallScan::State::kOpen) {
      if (!final) return false;
      result = {CallScan::State::kClosed, text->size(), text->size(), 0};
    }
    const auto call = result.state == CallScan::State::kClosed
                          ? ParseBody(std::string_view(*text).substr(0, result.body))
                          : std::nullopt;
    if (call.has_value()) {
      sink->Call(call->name, call->arguments);
    } else {
      sink->Content(
          absl::StrCat(called_ ? "" : opening_, AbslView(kOpen[1]), text->substr(0, result.total)));
    }
    called_ = true;  // the marker of the section is accounted for
    text->erase(0, result.total);
    state_ = result.state == CallScan::State::kTooLong ? State::kContent : State::kSection;
    return true;
  }

  State state_ = State::kContent;
  std::string opening_;  // the marker of the section, if it came
  bool called_ = false;  // something followed it
  CallScan scan_;
};

}  // namespace

std::unique_ptr<FormatParser> MakeDeepSeekParser() { return std::make_unique<DeepSeekParser>(); }

}  // namespace weft
