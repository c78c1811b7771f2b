// Characters whose capital form is more than one character.
#pragma once

#include <string_view>

namespace weft::jinja {

struct SpecialCase {
  char32_t code_point;
  std::string_view upper;
  std::string_view title;
};

// The row of a character, or null where one character maps to one.
// Source: The Unicode Standard 14.0, SpecialCasing.txt, the unconditional mappings.
const SpecialCase* FindSpecialCase(char32_t code_point);

}  // namespace weft::jinja
