// <tool_call>{"name": ..., "arguments": {...}}</tool_call>, any number of times.
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "coordinator/chat/marker_scan.h"
#include "coordinator/chat/reply_calls.h"
#include "coordinator/chat/reply_format.h"
#include "coordinator/chat/reply_markers.h"

namespace weft {
namespace {

constexpr std::string_view kOpen[] = {marker::kToolCall};
constexpr std::string_view kClose[] = {marker::kEndToolCall};

class HermesParser final : public FormatParser {
 public:
  void Consume(std::string* text, bool final, ReplySink* sink) override {
    while (in_call_ ? TakeCall(text, final, sink) : TakeContent(text, final, sink)) {
    }
  }

 private:
  // Each returns whether there may be more to take.
  bool TakeContent(std::string* text, bool final, ReplySink* sink) {
    if (const auto hit = FindMarker(*text, kOpen)) {
      sink->Content(std::string_view(*text).substr(0, hit->position));
      text->erase(0, hit->position + kOpen[0].size());
      in_call_ = true;
      scan_.Reset();
      return true;
    }
    const size_t safe = final ? text->size() : BytesBeforeMarker(*text, kOpen);
    sink->Content(std::string_view(*text).substr(0, safe));
    text->erase(0, safe);
    return false;
  }

  bool TakeCall(std::string* text, bool final, ReplySink* sink) {
    CallScan::Result result = scan_.UntilMarkerOutsideStrings(*text, kClose);
    if (result.state == CallScan::State::kOpen) {
      if (!final) return false;
      // The end of the reply closes it, since the closing token may be what ended it.
      result = {CallScan::State::kClosed, text->size(), text->size(), 0};
    }
    const std::string_view body = std::string_view(*text).substr(0, result.body);
    const auto call = result.state == CallScan::State::kClosed ? ParseCall(body) : std::nullopt;
    if (call.has_value()) {
      sink->Call(call->name, call->arguments);
    } else {
      sink->Content(absl::StrCat(AbslView(kOpen[0]), text->substr(0, result.total)));
    }
    text->erase(0, result.total);
    in_call_ = false;
    return true;
  }

  bool in_call_ = false;
  CallScan scan_;
};

}  // namespace

std::unique_ptr<FormatParser> MakeHermesParser() { return std::make_unique<HermesParser>(); }

}  // namespace weft
