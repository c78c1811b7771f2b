#include "common/base/escaped_text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/utf8.h"

namespace weft {
namespace {

// True for U+0080 to U+009F, which terminals take as control characters.
bool IsC1Control(std::string_view sequence) {
  return sequence.size() == 2 && static_cast<uint8_t>(sequence[0]) == 0xC2 &&
         static_cast<uint8_t>(sequence[1]) < 0xA0;
}

void AppendEscapedByte(uint8_t byte, std::string* out) {
  switch (byte) {
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
    case '\\':
      *out += "\\\\";
      return;
    default:
      absl::StrAppend(out, "\\x", absl::Hex(byte, absl::kZeroPad2));
  }
}

}  // namespace

std::string EscapedText(std::string_view text, size_t max_bytes) {
  std::string out;
  size_t used = 0;
  while (used < text.size()) {
    const std::string_view rest = text.substr(used);
    const size_t length = Utf8SequenceLength(rest);
    const size_t step = length == 0 ? 1 : length;
    if (used + step > max_bytes) return out + "...";
    const uint8_t first = static_cast<uint8_t>(rest[0]);
    const bool plain = length > 1 ? !IsC1Control(rest.substr(0, length))
                                  : length == 1 && first >= 0x20 && first != 0x7F && first != '\\';
    if (plain) {
      out.append(rest.substr(0, length));
    } else {
      for (size_t i = 0; i < step; ++i) AppendEscapedByte(static_cast<uint8_t>(rest[i]), &out);
    }
    used += step;
  }
  return out;
}

}  // namespace weft
