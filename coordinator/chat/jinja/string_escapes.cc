#include "coordinator/chat/jinja/string_escapes.h"

#include <algorithm>
#include <cctype>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/jinja/unicode_text.h"

namespace weft::jinja {
namespace {

// Appends the code point written in exactly `count` hexadecimal digits from `*position` on.
absl::Status AppendHexadecimal(std::string_view text, size_t count, size_t* position,
                               std::string* out) {
  char32_t code_point = 0;
  for (size_t i = 0; i < count; ++i, ++*position) {
    const char c = *position < text.size() ? text[*position] : ' ';
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) {
      return absl::InvalidArgumentError("an escape in a text has too few digits");
    }
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    code_point = code_point << 4 | static_cast<char32_t>(digit);
  }
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF)) {
    return absl::InvalidArgumentError("an escape in a text is no character");
  }
  AppendCodePoint(code_point, out);
  return absl::OkStatus();
}

void AppendOctal(std::string_view text, size_t* position, std::string* out) {
  char32_t code_point = 0;
  for (int i = 0; i < 3 && *position < text.size(); ++i, ++*position) {
    const char c = text[*position];
    if (c < '0' || c > '7') break;
    code_point = code_point << 3 | static_cast<char32_t>(c - '0');
  }
  AppendCodePoint(code_point, out);
}

}  // namespace

absl::StatusOr<std::string> ResolveEscapes(std::string_view text) {
  constexpr std::string_view kLetters = "\\'\"abfnrtv";
  constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i++];
    if (c != '\\' || i == text.size()) {
      out.push_back(c);
      continue;
    }
    const char letter = text[i];
    const size_t found = kLetters.find(letter);
    if (found != std::string_view::npos) {
      out.push_back(kMeanings[found]);
      ++i;
    } else if (letter == '\n') {
      ++i;
    } else if (letter >= '0' && letter <= '7') {
      AppendOctal(text, &i, &out);
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      ++i;
      RETURN_IF_ERROR(AppendHexadecimal(text, letter == 'x' ? 2 : letter == 'u' ? 4 : 8, &i, &out));
    } else if (letter == 'N') {
      return absl::InvalidArgumentError("names of characters in a text are not known here");
    } else {
      out.push_back('\\');
    }
  }
  return out;
}

}  // namespace weft::jinja
