// Rules for the parts of JSON text.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/grammar/grammar.h"

namespace weft {

inline constexpr size_t kLongestKey = 200;

// Makes each rule once, when it is first asked for. White space comes after commas and colons and
// around what is in brackets: none, a space, or a new line with an indentation of up to 20.
class JsonRules {
 public:
  explicit JsonRules(GrammarBuilder& builder) : builder_(builder) {}

  GrammarElement Space();
  GrammarElement Value();   // any
  GrammarElement Object();  // any
  GrammarElement Array();   // any
  GrammarElement String();  // any, in quotation marks
  GrammarElement Number();
  GrammarElement Integer();
  GrammarElement Boolean();
  GrammarElement Null();

  // One character of a string: as it is, or escaped where it must be.
  GrammarElement Character();
  // One character of `characters` as it stands in a string; control characters only if they have a
  // short escape. Nothing of it: an element that matches nothing.
  GrammarElement CharacterOf(const CharacterClass& characters);
  // A key that is none of `names` (at most kLongestKey characters each), in quotation marks and
  // without escapes.
  GrammarElement KeyBut(const std::vector<std::string>& names);
  // Decimal integers of a range; what is missing has no bound. Without bounds up to 16 digits.
  GrammarElement IntegerOf(std::optional<int64_t> least, std::optional<int64_t> most);

  GrammarElement Digits(int64_t least, int64_t most);
  GrammarElement Ascii(std::string_view characters);

 private:
  GrammarElement Once(int32_t& rule, std::string_view name,
                      std::vector<GrammarSequence> (JsonRules::*make)());
  std::vector<GrammarSequence> MakeSpace();
  std::vector<GrammarSequence> MakeValue();
  std::vector<GrammarSequence> MakeObject();
  std::vector<GrammarSequence> MakeArray();
  std::vector<GrammarSequence> MakeString();
  std::vector<GrammarSequence> MakeNumber();
  std::vector<GrammarSequence> MakeInteger();
  std::vector<GrammarSequence> MakeCharacter();
  // Sequences for [least, most], 0 <= least <= most, without leading zeros.
  void AddRange(uint64_t least, uint64_t most, std::vector<GrammarSequence>& out);
  // The same number of digits, with leading zeros.
  GrammarSequence DigitRange(std::string_view least, std::string_view most);
  GrammarElement KeyFrom(const std::vector<std::u32string>& names, size_t depth);

  GrammarBuilder& builder_;
  int32_t space_ = -1, value_ = -1, object_ = -1, array_ = -1, string_ = -1, number_ = -1,
          integer_ = -1, character_ = -1;
};

}  // namespace weft
