#include "rpc_backend/protocol/clean_text.h"

#include "common/base/escaped_text.h"
#include "common/base/utf8.h"

namespace weft {
namespace {

constexpr std::string_view kCut = "...";

// The longest beginning of well-formed `text` that has at most `max_bytes` and ends between
// characters.
std::string_view Beginning(std::string_view text, size_t max_bytes) {
  size_t used = 0;
  while (used < text.size()) {
    const size_t step = Utf8SequenceLength(text.substr(used));
    if (step == 0 || used + step > max_bytes) break;
    used += step;
  }
  return text.substr(0, used);
}

}  // namespace

bool IsCleanText(std::string_view text) {
  size_t used = 0;
  while (used < text.size()) {
    const std::string_view rest = text.substr(used);
    const size_t length = Utf8SequenceLength(rest);
    const auto first = static_cast<uint8_t>(rest[0]);
    if (length == 0) return false;
    if (length == 1 && (first < 0x20 || first == 0x7F)) return false;
    // U+0080 to U+009F, which terminals take as control characters.
    if (length == 2 && first == 0xC2 && static_cast<uint8_t>(rest[1]) < 0xA0) return false;
    used += length;
  }
  return true;
}

std::string CleanText(std::string_view text, int64_t max_bytes) {
  const auto most = static_cast<size_t>(max_bytes);
  const std::string_view start = text.substr(0, 2 * most);  // escapes only lengthen it
  if (text.size() <= most && IsCleanText(text)) return std::string(text);
  const bool cut = start.size() < text.size();
  // A character that is cut through at the end of `start` does not make the rest unclean.
  const std::string_view whole = cut ? Beginning(start, start.size()) : start;
  const bool clean = whole.size() + 4 > start.size() && IsCleanText(whole);
  const std::string shown = clean ? std::string(whole) : EscapedText(start, start.size());
  if (shown.size() <= most && !cut) return shown;
  return std::string(Beginning(shown, most - kCut.size())).append(kCut);
}

}  // namespace weft
