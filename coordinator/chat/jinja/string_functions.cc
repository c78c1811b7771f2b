#include "coordinator/chat/jinja/string_functions.h"

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "coordinator/chat/jinja/python_text.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {
namespace {

// Bytes of the last character of `text`, which is not empty.
size_t LastCharacter(std::string_view text) {
  size_t start = text.size() - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return text.size() - start;
}

size_t FirstCharacter(std::string_view text) {
  size_t end = 0;
  NextCodePoint(text, &end);
  return end;
}

}  // namespace

std::string_view Strip(std::string_view text, const std::string* set, bool left, bool right) {
  if (set == nullptr) {
    if (left) text.remove_prefix(LeadingSpace(text));
    if (right) text.remove_suffix(TrailingSpace(text));
    return text;
  }
  // A character of UTF-8 is found only where it stands as a whole.
  const auto in_set = [&](std::string_view character) {
    return set->find(character) != std::string::npos;
  };
  while (left && !text.empty() && in_set(text.substr(0, FirstCharacter(text)))) {
    text.remove_prefix(FirstCharacter(text));
  }
  while (right && !text.empty() && in_set(text.substr(text.size() - LastCharacter(text)))) {
    text.remove_suffix(LastCharacter(text));
  }
  return text;
}

absl::StatusOr<std::string> Replace(Runtime& runtime, std::string_view text, std::string_view from,
                                    std::string_view to, int64_t count) {
  std::string out;
  size_t done = 0;
  for (size_t at = 0; count != 0; --count) {
    const size_t found = from.empty() ? at : text.find(from, at);
    if (found == std::string_view::npos || found > text.size()) break;
    absl::StrAppend(&out, AbslView(text.substr(done, found - done)), AbslView(to));
    if (!runtime.ChargeBytes(to.size()) || !runtime.HasRoom(static_cast<int64_t>(out.size()))) {
      return runtime.status();
    }
    done = found + from.size();
    at = done;
    if (!from.empty()) continue;
    if (at == text.size()) break;
    NextCodePoint(text, &at);
  }
  absl::StrAppend(&out, AbslView(text.substr(done)));
  return out;
}

std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t at = i;
    const char32_t c = NextCodePoint(text, &i);
    if (!IsLineEnd(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(start, (keep_ends ? i : at) - start));
    start = i;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

absl::StatusOr<std::string> JoinTexts(Runtime& runtime, const std::vector<Value>& items,
                                      std::string_view separator) {
  std::string out;
  bool first = true;
  for (const Value& item : items) {
    if (!first) out += separator;
    first = false;
    const std::string text = ToText(runtime, item);
    out += text;
    if (!runtime.ChargeBytes(text.size() + separator.size()) ||
        !runtime.HasRoom(static_cast<int64_t>(out.size()))) {
      return runtime.status();
    }
  }
  return out;
}

}  // namespace weft::jinja
