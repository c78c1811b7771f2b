// Text as Python sees it: counted in code points, with Unicode's white space and case. All input
// is valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::jinja {

int64_t CodePointCount(std::string_view text);

// The code point at `position`, which moves behind it. position < text.size().
char32_t NextCodePoint(std::string_view text, size_t* position);

void AppendCodePoint(char32_t code_point, std::string* out);

// Byte positions of all code points and of the end: count + 1 numbers.
std::vector<size_t> CodePointOffsets(std::string_view text);

// Bytes of white space (Python's str.isspace) at the start and end of `text`.
size_t LeadingSpace(std::string_view text);
size_t TrailingSpace(std::string_view text);
bool IsSpace(char32_t code_point);
// What str.splitlines cuts at.
bool IsLineEnd(char32_t code_point);

bool IsLetter(char32_t code_point);
// Decimal digits; with `any_number`, all that has a numeric value.
bool IsDigit(char32_t code_point, bool any_number = false);
bool IsUpper(char32_t code_point);
bool IsLower(char32_t code_point);
bool IsCased(char32_t code_point);
// Python's str.isprintable for one code point.
bool IsPrintable(char32_t code_point);

// Full case mapping, as str.upper, lower, title and capitalize do.
std::string Upper(std::string_view text);
std::string Lower(std::string_view text);
std::string Title(std::string_view text);
std::string Capitalize(std::string_view text);
std::string SwapCase(std::string_view text);

}  // namespace weft::jinja
