#include "coordinator/grammar/text_until.h"

#include <string>
#include <utility>
#include <vector>

#include "coordinator/tokenizer/utf8.h"

namespace weft {
namespace {

std::u32string CodePoints(std::string_view text) {
  std::u32string points;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = DecodeUtf8(text, at);
    points.push_back(character.code_point);
    at += static_cast<size_t>(character.bytes);
  }
  return points;
}

// How much of the word is there once `c` has followed its first `have` characters.
size_t Next(const std::u32string& word, size_t have, char32_t c) {
  const std::u32string seen = word.substr(0, have) + c;
  for (size_t length = seen.size(); length > 0; --length) {
    if (word.compare(0, length, seen, seen.size() - length) == 0) return length;
  }
  return 0;
}

// The automaton that finds a word, a rule for each of its states: words are short. The text ends
// with the word, or may end anywhere before it.
GrammarElement Automaton(std::string_view word, bool ends_with_word, GrammarBuilder& builder) {
  const std::u32string points = CodePoints(word);
  std::u32string alphabet;
  std::vector<CharacterRange> ranges;
  for (const char32_t c : points) {
    if (alphabet.find(c) != alphabet.npos) continue;
    alphabet.push_back(c);
    ranges.push_back({c, c});
  }
  const GrammarElement others = builder.Class(MakeCharacterClass(std::move(ranges), true));
  std::vector<int32_t> rules;
  rules.reserve(points.size());
  for (size_t have = 0; have < points.size(); ++have) rules.push_back(builder.AddRule("until"));
  for (size_t have = 0; have < points.size(); ++have) {
    builder.AddAlternative(rules[have], {others, {true, rules[0]}});
    if (!ends_with_word) builder.AddAlternative(rules[have], {});
    for (const char32_t c : alphabet) {
      const GrammarElement character = builder.Class({{c, c}});
      const size_t next = Next(points, have, c);
      if (next == points.size()) {
        if (ends_with_word) builder.AddAlternative(rules[have], {character});
      } else {
        builder.AddAlternative(rules[have], {character, {true, rules[next]}});
      }
    }
  }
  return {true, rules[0]};
}

}  // namespace

GrammarElement TextUntil(std::string_view word, GrammarBuilder& builder) {
  return Automaton(word, true, builder);
}

GrammarElement TextWithout(std::string_view word, GrammarBuilder& builder) {
  return Automaton(word, false, builder);
}

}  // namespace weft
