#include "coordinator/tokenizer/byte_alphabet.h"

#include <array>

#include "coordinator/tokenizer/utf8.h"

namespace weft {
namespace {

constexpr char32_t kFirstSubstitute = 0x100;
constexpr int kSubstituteCount = 68;

constexpr bool StandsForItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<char32_t, 256> character_of_byte = {};
  std::array<uint8_t, kSubstituteCount> byte_of_substitute = {};
};

constexpr Alphabet BuildAlphabet() {
  Alphabet alphabet;
  int substitute_count = 0;
  for (int byte = 0; byte < 256; ++byte) {
    if (StandsForItself(byte)) {
      alphabet.character_of_byte[byte] = static_cast<char32_t>(byte);
    } else {
      alphabet.byte_of_substitute[substitute_count] = static_cast<uint8_t>(byte);
      alphabet.character_of_byte[byte] = kFirstSubstitute + substitute_count;
      ++substitute_count;
    }
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = BuildAlphabet();
static_assert(kAlphabet.character_of_byte[' '] == 0x120);
static_assert(kAlphabet.character_of_byte[0xAD] == kFirstSubstitute + kSubstituteCount - 1);

}  // namespace

char32_t ByteToCharacter(uint8_t byte) { return kAlphabet.character_of_byte[byte]; }

std::optional<uint8_t> CharacterToByte(char32_t character) {
  if (character < 256) {
    if (!StandsForItself(static_cast<int>(character))) return std::nullopt;
    return static_cast<uint8_t>(character);
  }
  if (character >= kFirstSubstitute + kSubstituteCount) return std::nullopt;
  return kAlphabet.byte_of_substitute[character - kFirstSubstitute];
}

std::string BytesToAlphabet(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) AppendUtf8(ByteToCharacter(static_cast<uint8_t>(byte)), &text);
  return text;
}

std::string AlphabetToBytes(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const Utf8Character character = DecodeUtf8(text, position);
    const std::optional<uint8_t> byte =
        character.kind == Utf8Kind::kValid ? CharacterToByte(character.code_point) : std::nullopt;
    if (byte.has_value()) {
      bytes.push_back(static_cast<char>(*byte));
    } else {
      bytes.append(text.substr(position, character.bytes));
    }
    position += character.bytes;
  }
  return bytes;
}

}  // namespace weft
