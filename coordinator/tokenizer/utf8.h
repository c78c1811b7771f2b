// Reading and writing UTF-8, one character at a time, tolerant of bytes that are not UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;
inline constexpr std::string_view kReplacementText = "\xEF\xBF\xBD";

enum class Utf8Kind {
  kValid,      // a character: 1 to 4 bytes
  kInvalid,    // bytes that no continuation can make a character
  kTruncated,  // the text ends inside what may be a character
};

struct Utf8Character {
  Utf8Kind kind = Utf8Kind::kInvalid;
  char32_t code_point = kReplacementCharacter;
  // Bytes covered, at least 1. Of something invalid or truncated this is the longest prefix of a
  // possible character
  // ("maximal subpart"), which a decoder replaces by one U+FFFD.
  int bytes = 1;
};

// The character that starts at `text[position]`, position < text.size(). Surrogates, overlong forms
// and values above U+10FFFF are invalid.
// Source: The Unicode Standard 14.0, table 3-7 and section 3.9.
Utf8Character DecodeUtf8(std::string_view text, size_t position);

// Appends the UTF-8 form of `code_point`, which must be below 0x110000.
void AppendUtf8(char32_t code_point, std::string* out);

// True if all of `text` is UTF-8.
bool IsValidUtf8(std::string_view text);

}  // namespace weft
