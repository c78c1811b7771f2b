// A reply that is {"name": ..., "parameters": {...}}, perhaps after <|python_tag|>, perhaps several
// with ';' between them; or, after the tag, name.call(argument="value", ...).
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "coordinator/chat/marker_scan.h"
#include "coordinator/chat/reply_calls.h"
#include "coordinator/chat/reply_format.h"
#include "coordinator/chat/reply_markers.h"

namespace weft {
namespace {

constexpr std::string_view kTag = marker::kPythonTag;
constexpr std::string_view kSpace = " \t\r\n";
// The keys that a call starts with; any other object is an answer in JSON.
constexpr std::string_view kFirstKeys[] = {"\"name\"", "\"type\""};
// White space before a call; more is text.
constexpr size_t kMaxSpace = 64;

// name.call(a="b", c="d").
std::optional<FunctionCall> ParseBuiltIn(std::string_view text) {
  constexpr std::string_view kCall = ".call(";
  const size_t mark = text.find(kCall);
  const size_t last = text.find_last_not_of(kSpace);
  if (mark == std::string_view::npos || text[last] != ')') return std::nullopt;
  const std::string_view name = text.substr(0, mark);
  std::string_view rest = text.substr(mark + kCall.size(), last - mark - kCall.size());
  Json arguments = Json::object();
  while (!rest.empty()) {
    const size_t equals = rest.find("=\"");
    if (equals == std::string_view::npos) return std::nullopt;
    size_t end = equals + 2;
    while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
    if (end >= rest.size()) return std::nullopt;
    const auto value = ParseJson(rest.substr(equals + 1, end - equals), {});
    const std::string key(rest.substr(0, equals));
    const bool is_word = !key.empty() && key.find_first_of(" \"'(),.=") == std::string::npos;
    if (!value.ok() || !is_word || arguments.size() >= 64) return std::nullopt;
    arguments[key] = *value;
    rest.remove_prefix(end + 1);
    if (!rest.empty() && rest[0] != ',') return std::nullopt;
    rest.remove_prefix(std::min(rest.find_first_not_of(", \t\r\n"), rest.size()));
  }
  return MakeCall(name, JsonLine(arguments));
}

class LlamaParser final : public FormatParser {
 public:
  void Consume(std::string* text, bool final, ReplySink* sink) override {
    while (Step(text, final, sink)) {
    }
  }

 private:
  enum class State { kStart, kObject, kCode, kText };

  bool Step(std::string* text, bool final, ReplySink* sink) {
    switch (state_) {
      case State::kStart:
        return Start(text, final, sink);
      case State::kObject:
        return TakeObject(text, final, sink);
      case State::kCode:
        return TakeCode(text, final, sink);
      case State::kText:
        sink->Content(*text);
        text->clear();
        return false;
    }
    return false;
  }

  // Where a call may start.
  bool Start(std::string* text, bool final, ReplySink* sink) {
    const size_t begin =
        text->find_first_not_of(after_call_ ? std::string_view(" \t\r\n;") : kSpace);
    if (begin == std::string::npos || begin > kMaxSpace) {
      const bool too_much = text->size() > kMaxSpace;
      if (after_call_ && !too_much && final) text->clear();
      if (!final && !too_much) return false;
      return BecomeText(sink);
    }
    const std::string_view rest = std::string_view(*text).substr(begin);
    if (tag_.empty() && rest.starts_with(kTag)) {
      tag_ = text->substr(0, begin + kTag.size());
      text->erase(0, begin + kTag.size());
      return true;
    }
    if (tag_.empty() && !final && MayBe(rest, kTag)) return false;
    if (rest[0] == '{') {
      const std::optional<bool> is_call = StartsCall(rest);
      if (!is_call.has_value() && !final) return false;
      if (is_call.value_or(false)) {
        space_ = text->substr(0, begin);
        text->erase(0, begin);
        state_ = State::kObject;
        scan_.Reset();
        return true;
      }
    }
    if (tag_.empty()) return BecomeText(sink);
    state_ = State::kCode;
    return true;
  }

  // Whether an object begins with a key of calls; nothing if that is not seen yet.
  static std::optional<bool> StartsCall(std::string_view object) {
    const size_t key = object.find_first_not_of(kSpace, 1);
    if (key == std::string_view::npos) {
      return object.size() > kMaxSpace ? std::optional<bool>(false) : std::nullopt;
    }
    if (key > kMaxSpace) return false;
    const std::string_view rest = object.substr(key);
    for (const std::string_view wanted : kFirstKeys) {
      if (rest.starts_with(wanted)) return true;
      if (rest.size() < wanted.size() && MayBe(rest, wanted)) return std::nullopt;
    }
    return false;
  }

  bool BecomeText(ReplySink* sink) {
    sink->Content(std::exchange(tag_, ""));
    state_ = State::kText;
    return true;
  }

  bool TakeObject(std::string* text, bool final, ReplySink* sink) {
    const CallScan::Result result = scan_.UntilObjectEnd(*text);
    if (result.state == CallScan::State::kOpen && !final) return false;
    const auto call = result.state == CallScan::State::kClosed
                          ? ParseCall(std::string_view(*text).substr(0, result.body))
                          : std::nullopt;
    if (!call.has_value()) {
      sink->Content(absl::StrCat(std::exchange(tag_, ""), space_));
      state_ = State::kText;
      return true;
    }
    sink->Call(call->name, call->arguments);
    text->erase(0, result.total);
    tag_.clear();
    after_call_ = true;
    state_ = State::kStart;
    return true;
  }

  // What follows the tag and is no JSON: all of it, to the end of the reply.
  bool TakeCode(std::string* text, bool final, ReplySink* sink) {
    if (text->size() <= kMaxCallBytes) {
      if (!final) return false;
      if (const auto call = ParseBuiltIn(*text)) {
        sink->Call(call->name, call->arguments);
        text->clear();
        return false;
      }
    }
    return BecomeText(sink);
  }

  State state_ = State::kStart;
  std::string tag_;    // the tag with what stood before it, if it came
  std::string space_;  // before the object
  bool after_call_ = false;
  CallScan scan_;
};

}  // namespace

std::unique_ptr<FormatParser> MakeLlamaParser() { return std::make_unique<LlamaParser>(); }

}  // namespace weft
