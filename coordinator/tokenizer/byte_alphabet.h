// The 256 printable characters by which byte-level vocabularies write bytes.
// Source: spec chapter I.4. Bytes 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF stand for the code point of
// the same value; the other 68, in ascending order, for U+0100, U+0101 and so on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

// The character for `byte`, in U+0021..U+0143.
char32_t ByteToCharacter(uint8_t byte);

// The byte that `character` stands for; nothing for characters outside the alphabet.
std::optional<uint8_t> CharacterToByte(char32_t character);

// The characters for all of `bytes`, as UTF-8.
std::string BytesToAlphabet(std::string_view bytes);

// The bytes that `text` stands for. Characters outside the alphabet, and bytes that are not UTF-8,
// stay as they are.
std::string AlphabetToBytes(std::string_view text);

}  // namespace weft
