#include "coordinator/grammar/json_rules.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "coordinator/tokenizer/utf8.h"

namespace weft {
namespace {

constexpr int64_t kMostDigits = 16;  // of an integer without bounds, and of a fraction
constexpr int64_t kMostIndentation = 20;

// Quotation mark, backslash, and what is not written as it is.
bool NeedsEscape(char32_t c) { return c < 0x20 || c == '"' || c == '\\' || c == 0x7F; }

GrammarSequence Join(std::initializer_list<GrammarSequence> parts) {
  GrammarSequence all;
  for (const GrammarSequence& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// The characters of `wanted` that need no escape.
CharacterClass Unescaped(const CharacterClass& wanted) {
  std::vector<CharacterRange> result;
  for (const CharacterRange& range : wanted) {
    char32_t first = range.first;
    for (char32_t c = first; c <= std::min<char32_t>(range.last, 0x80); ++c) {
      if (!NeedsEscape(c)) continue;
      if (c > first) result.push_back({first, c - 1});
      first = c + 1;
    }
    if (first <= range.last) result.push_back({first, range.last});
  }
  return MakeCharacterClass(std::move(result), false);
}

}  // namespace

GrammarElement JsonRules::Once(int32_t& rule, std::string_view name,
                               std::vector<GrammarSequence> (JsonRules::*make)()) {
  if (rule >= 0) return {true, rule};
  rule = builder_.AddRule(AbslView(name));  // before its alternatives, which may use it
  const int32_t made = rule;
  for (GrammarSequence& sequence : (this->*make)()) {
    builder_.AddAlternative(made, std::move(sequence));
  }
  return {true, made};
}

GrammarElement JsonRules::Ascii(std::string_view characters) {
  std::vector<CharacterRange> ranges;
  for (const char c : characters) {
    ranges.push_back({static_cast<uint8_t>(c), static_cast<uint8_t>(c)});
  }
  return builder_.Class(MakeCharacterClass(std::move(ranges), false));
}

GrammarElement JsonRules::Digits(int64_t least, int64_t most) {
  return builder_.Choice({builder_.Repeat({Ascii("0123456789")}, least, most)});
}

GrammarElement JsonRules::Space() { return Once(space_, "space", &JsonRules::MakeSpace); }
GrammarElement JsonRules::Value() { return Once(value_, "value", &JsonRules::MakeValue); }
GrammarElement JsonRules::Object() { return Once(object_, "object", &JsonRules::MakeObject); }
GrammarElement JsonRules::Array() { return Once(array_, "array", &JsonRules::MakeArray); }
GrammarElement JsonRules::String() { return Once(string_, "string", &JsonRules::MakeString); }
GrammarElement JsonRules::Number() { return Once(number_, "number", &JsonRules::MakeNumber); }
GrammarElement JsonRules::Integer() { return Once(integer_, "integer", &JsonRules::MakeInteger); }
GrammarElement JsonRules::Character() {
  return Once(character_, "character", &JsonRules::MakeCharacter);
}
GrammarElement JsonRules::Boolean() {
  return builder_.Choice({builder_.Text("true"), builder_.Text("false")});
}
GrammarElement JsonRules::Null() { return builder_.Choice({builder_.Text("null")}); }

std::vector<GrammarSequence> JsonRules::MakeSpace() {
  return {{},
          {Ascii(" ")},
          Join({{Ascii("\n")}, builder_.Repeat({Ascii(" \t")}, 0, kMostIndentation)})};
}

std::vector<GrammarSequence> JsonRules::MakeValue() {
  return {{Object()}, {Array()}, {String()}, {Number()}, {Boolean()}, {Null()}};
}

std::vector<GrammarSequence> JsonRules::MakeObject() {
  const GrammarElement member = builder_.Choice({{String(), Ascii(":"), Space(), Value()}});
  const GrammarSequence more = builder_.Repeat({Ascii(","), Space(), member}, 0, -1);
  return {{Ascii("{"), Space(), Ascii("}")},
          Join({{Ascii("{"), Space(), member}, more, {Space(), Ascii("}")}})};
}

std::vector<GrammarSequence> JsonRules::MakeArray() {
  const GrammarSequence more = builder_.Repeat({Ascii(","), Space(), Value()}, 0, -1);
  return {{Ascii("["), Space(), Ascii("]")},
          Join({{Ascii("["), Space(), Value()}, more, {Space(), Ascii("]")}})};
}

std::vector<GrammarSequence> JsonRules::MakeString() {
  return {Join({{Ascii("\"")}, builder_.Repeat({Character()}, 0, -1), {Ascii("\"")}})};
}

std::vector<GrammarSequence> JsonRules::MakeNumber() {
  const GrammarSequence fraction = builder_.Optional({Ascii("."), Digits(1, kMostDigits)});
  const GrammarSequence exponent =
      builder_.Optional(Join({{Ascii("eE")}, builder_.Optional({Ascii("+-")}), {Digits(1, 2)}}));
  return {Join({{Integer()}, fraction, exponent})};
}

std::vector<GrammarSequence> JsonRules::MakeInteger() {
  const GrammarElement whole =
      builder_.Choice({{Ascii("0")}, {Ascii("123456789"), Digits(0, kMostDigits - 1)}});
  return {Join({builder_.Optional({Ascii("-")}), {whole}})};
}

// An escape \u stands for one character, so that lengths are right: no half of a pair.
std::vector<GrammarSequence> JsonRules::MakeCharacter() {
  const GrammarElement hex = Ascii("0123456789abcdefABCDEF");
  const GrammarElement plain =
      builder_.Class(MakeCharacterClass({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}}, true));
  return {{plain},
          {Ascii("\\"), Ascii("\"\\/bfnrt")},
          {Ascii("\\"), Ascii("u"), Ascii("0123456789abcefABCEF"), hex, hex, hex},
          {Ascii("\\"), Ascii("u"), Ascii("dD"), Ascii("01234567"), hex, hex}};
}

GrammarElement JsonRules::CharacterOf(const CharacterClass& characters) {
  std::vector<GrammarSequence> forms = {{builder_.Class(Unescaped(characters))}};
  static constexpr std::pair<char, char> kEscapes[] = {
      {'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}};
  for (const auto& [character, letter] : kEscapes) {
    const auto code = static_cast<char32_t>(static_cast<uint8_t>(character));
    if (!Intersects(characters, code, code)) continue;
    forms.push_back({Ascii("\\"), Ascii({&letter, 1})});
  }
  return builder_.Choice(std::move(forms));
}

GrammarElement JsonRules::KeyFrom(const std::vector<std::u32string>& names, size_t depth) {
  const GrammarElement plain =
      builder_.Class(MakeCharacterClass({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}}, true));
  if (names.empty()) return builder_.Choice({builder_.Repeat({plain}, 0, -1)});
  // By their next characters; a name that ends here may not end here.
  std::map<char32_t, std::vector<std::u32string>> next;
  bool ends = false;
  for (const std::u32string& name : names) {
    if (name.size() == depth) {
      ends = true;
    } else {
      next[name[depth]].push_back(name);
    }
  }
  std::vector<GrammarSequence> ways;
  if (!ends) ways.emplace_back();
  std::vector<CharacterRange> taken = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}};
  for (const auto& [character, longer] : next) {
    taken.push_back({character, character});
    if (NeedsEscape(character)) continue;  // keys of this kind are never written so
    ways.push_back({builder_.Class({{character, character}}), KeyFrom(longer, depth + 1)});
  }
  ways.push_back({builder_.Class(MakeCharacterClass(std::move(taken), true)), KeyFrom({}, 0)});
  return builder_.Choice(std::move(ways));
}

GrammarElement JsonRules::KeyBut(const std::vector<std::string>& names) {
  std::vector<std::u32string> characters;
  for (const std::string& name : names) {
    std::u32string& text = characters.emplace_back();
    for (size_t at = 0; at < name.size();) {
      const Utf8Character next = DecodeUtf8(name, at);
      text += next.code_point;
      at += static_cast<size_t>(next.bytes);
    }
  }
  const GrammarElement body = KeyFrom(characters, 0);
  return builder_.Choice({{Ascii("\""), body, Ascii("\"")}});
}

GrammarSequence JsonRules::DigitRange(std::string_view least, std::string_view most) {
  if (least.empty()) return {};
  const auto digit = [&](char from, char to) {
    return builder_.Class({{static_cast<uint8_t>(from), static_cast<uint8_t>(to)}});
  };
  const std::string zeros(least.size() - 1, '0'), nines(least.size() - 1, '9');
  if (least[0] == most[0]) {
    return Join({{digit(least[0], least[0])}, DigitRange(least.substr(1), most.substr(1))});
  }
  const auto count = static_cast<int64_t>(least.size()) - 1;
  std::vector<GrammarSequence> ways;
  char first = least[0], last = most[0];
  if (least.substr(1) != zeros) {
    ways.push_back(Join({{digit(first, first)}, DigitRange(least.substr(1), nines)}));
    ++first;
  }
  if (most.substr(1) != nines) {
    ways.push_back(Join({{digit(last, last)}, DigitRange(zeros, most.substr(1))}));
    --last;
  }
  if (first <= last) {
    ways.push_back(
        Join({{digit(first, last)}, builder_.Repeat({Ascii("0123456789")}, count, count)}));
  }
  return {builder_.Choice(std::move(ways))};
}

void JsonRules::AddRange(uint64_t least, uint64_t most, std::vector<GrammarSequence>& out) {
  for (uint64_t low = least; low <= most;) {
    const std::string from = absl::StrCat(low);
    std::string to(from.size(), '9');
    const std::string end = absl::StrCat(most);
    if (end.size() == from.size()) to = end;
    out.push_back(DigitRange(from, to));
    if (to == end) return;
    low = 1;
    for (size_t i = 0; i < from.size(); ++i) low *= 10;
  }
}

GrammarElement JsonRules::IntegerOf(std::optional<int64_t> least, std::optional<int64_t> most) {
  if (!least && !most) return Integer();
  constexpr int64_t kFar = 9'999'999'999'999'999;  // kMostDigits digits
  int64_t low = least ? *least : -kFar;
  int64_t high = most ? *most : kFar;
  // A bound beyond what numbers of 16 digits reach has one value on its open side.
  if (!least) low = std::min(low, high);
  if (!most) high = std::max(low, high);
  std::vector<GrammarSequence> ways;
  const auto magnitude = [](int64_t value) {
    return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  };
  if (high >= 0 && low <= high)
    AddRange(magnitude(std::max<int64_t>(low, 0)), magnitude(high), ways);
  if (low < 0 && low <= high) {
    std::vector<GrammarSequence> negative;
    AddRange(magnitude(std::min<int64_t>(high, -1)), magnitude(low), negative);
    for (const GrammarSequence& digits : negative) ways.push_back(Join({{Ascii("-")}, digits}));
  }
  if (ways.empty()) return builder_.Class({});  // no integer at all
  return builder_.Choice(std::move(ways));
}

}  // namespace weft
