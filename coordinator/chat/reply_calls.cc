#include "coordinator/chat/reply_calls.h"

#include "coordinator/chat/marker_scan.h"

namespace weft {
namespace {

// Names are short words; anything else is a mistake of the model.
constexpr size_t kMaxNameBytes = 256;

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         name.find_first_of(" \t\r\n\"<>{}") == std::string_view::npos;
}

std::optional<FunctionCall> FromJson(const std::string& name, const Json& arguments) {
  if (!IsName(name)) return std::nullopt;
  if (arguments.is_object()) return FunctionCall{name, JsonLine(arguments)};
  if (const auto* text = arguments.get_ptr<const std::string*>()) return MakeCall(name, *text);
  return std::nullopt;
}

}  // namespace

std::optional<FunctionCall> ParseCall(std::string_view text) {
  const auto json = ParseJson(text, {});
  if (!json.ok() || !json->is_object()) return std::nullopt;
  const auto name = json->find("name");
  if (name == json->end() || !name->is_string()) return std::nullopt;
  for (const char* key : {"arguments", "parameters"}) {
    const auto arguments = json->find(key);
    if (arguments != json->end() && !arguments->is_null()) {
      return FromJson(name->get<std::string>(), *arguments);
    }
  }
  return FromJson(name->get<std::string>(), Json::object());
}

std::optional<FunctionCall> MakeCall(std::string_view name, std::string_view arguments) {
  const auto json = ParseJson(arguments, {});
  if (!IsName(name) || !json.ok() || !json->is_object()) return std::nullopt;
  return FunctionCall{std::string(name), JsonLine(*json)};
}

CallScan::Result CallScan::Limit(std::string_view text, Result result) const {
  const size_t size = result.state == State::kClosed ? result.total : text.size();
  if (size <= kMaxCallBytes) return result;
  // Up to the first character that passes the limit, wherever pieces end.
  size_t cut = kMaxCallBytes + 1;
  while (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) ++cut;
  return {State::kTooLong, cut, cut, 0};
}

bool CallScan::InString(char c) {
  if (in_string_) {
    in_string_ = escaped_ || c != '"';
    escaped_ = !escaped_ && c == '\\';
    return true;
  }
  in_string_ = c == '"';
  return false;
}

CallScan::Result CallScan::UntilMarkerOutsideStrings(std::string_view text,
                                                     std::span<const std::string_view> closers) {
  for (; scanned_ < text.size(); ++scanned_) {
    if (InString(text[scanned_])) continue;
    const std::string_view rest = text.substr(scanned_);
    for (size_t i = 0; i < closers.size(); ++i) {
      const size_t total = scanned_ + closers[i].size();
      if (rest.starts_with(closers[i])) return Limit(text, {State::kClosed, scanned_, total, i});
      if (closers[i].starts_with(rest)) return Limit(text, {});  // the rest of it may come
    }
  }
  return Limit(text, {});
}

CallScan::Result CallScan::UntilMarker(std::string_view text,
                                       std::span<const std::string_view> closers) {
  if (const auto hit = FindMarker(text, closers, scanned_)) {
    const size_t total = hit->position + closers[hit->index].size();
    return Limit(text, {State::kClosed, hit->position, total, hit->index});
  }
  scanned_ = BytesBeforeMarker(text, closers);
  return Limit(text, {});
}

CallScan::Result CallScan::UntilObjectEnd(std::string_view text) {
  for (; scanned_ < text.size(); ++scanned_) {
    const char c = text[scanned_];
    if (InString(c)) continue;
    if (c == '{' || c == '[') ++depth_;
    if (c == '}' || c == ']') --depth_;
    if (depth_ == 0) return Limit(text, {State::kClosed, scanned_ + 1, scanned_ + 1, 0});
  }
  return Limit(text, {});
}

}  // namespace weft
