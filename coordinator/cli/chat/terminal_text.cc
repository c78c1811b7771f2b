#include "coordinator/cli/chat/terminal_text.h"

#include <cstdint>

#include "coordinator/tokenizer/utf8_stream.h"

namespace weft {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr unsigned char kDelete = 0x7F;
constexpr uint32_t kDeletePicture = 0x2421;

// One that needs three bytes.
void AppendCharacter(uint32_t character, std::string& out) {
  out += static_cast<char>(0xE0 | (character >> 12));
  out += static_cast<char>(0x80 | ((character >> 6) & 0x3F));
  out += static_cast<char>(0x80 | (character & 0x3F));
}

size_t CharacterBytes(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

// U+202A to U+202E and U+2066 to U+2069.
bool TurnsWriting(std::string_view character) {
  if (character.size() != 3 || character[0] != '\xE2') return false;
  const auto last = static_cast<unsigned char>(character[2]);
  if (character[1] == '\x80') return last >= 0xAA && last <= 0xAE;
  return character[1] == '\x81' && last >= 0xA6 && last <= 0xA9;
}

void AppendShown(std::string_view character, std::string& out) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (first == kDelete) {
    AppendCharacter(kDeletePicture, out);
  } else if (first < 0x20 && first != '\n' && first != '\t') {
    AppendCharacter(0x2400 + first, out);
  } else if (first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0) {
    out += kReplacement;
  } else if (TurnsWriting(character)) {
    out += kReplacement;
  } else {
    out += character;
  }
}

}  // namespace

std::string TerminalText(std::string_view text) {
  const std::string valid = ReplaceInvalidUtf8(text);
  std::string out;
  out.reserve(valid.size());
  for (size_t at = 0; at < valid.size();) {
    const size_t bytes = CharacterBytes(static_cast<unsigned char>(valid[at]));
    AppendShown(std::string_view(valid).substr(at, bytes), out);
    at += bytes;
  }
  return out;
}

}  // namespace weft
