#include "coordinator/grammar/regex_rules.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/tokenizer/utf8.h"

namespace weft {
namespace {

using Ranges = std::vector<CharacterRange>;

class Parser {
 public:
  Parser(std::string_view pattern, GrammarBuilder& builder, JsonRules& json)
      : text_(pattern), builder_(builder), json_(json) {}

  absl::StatusOr<GrammarSequence> Parse() {
    if (!IsValidUtf8(text_)) return Error("this is not UTF-8");
    const bool from_start = Take('^');
    ASSIGN_OR_RETURN(const std::vector<GrammarSequence> ways, ParseAlternatives(0));
    const bool to_end = Take('$');
    if (at_ < text_.size()) return Error("this is not understood here");
    // In a|b$ the ends belong to one of the alternatives.
    if (ways.size() > 1 && (from_start || to_end)) {
      return Error("^ and $ beside | need a group around the alternatives");
    }
    GrammarSequence sequence;
    const GrammarSequence anything = builder_.Repeat({json_.Character()}, 0, -1);
    if (!from_start) sequence = anything;
    sequence.push_back(builder_.Choice(ways));
    if (!to_end) sequence.insert(sequence.end(), anything.begin(), anything.end());
    return sequence;
  }

 private:
  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("pattern, position ", at_ + 1, ": ", AbslView(what)));
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  absl::StatusOr<std::vector<GrammarSequence>> ParseAlternatives(int depth) {
    if (depth > builder_.limits().nesting) return Error("too many nested groups");
    std::vector<GrammarSequence> ways;
    do {
      ASSIGN_OR_RETURN(ways.emplace_back(), ParseSequence(depth));
    } while (Take('|'));
    return ways;
  }

  absl::StatusOr<GrammarSequence> ParseSequence(int depth) {
    GrammarSequence sequence;
    while (at_ < text_.size() && Peek() != '|' && Peek() != ')' && Peek() != '$') {
      ASSIGN_OR_RETURN(GrammarElement item, ParseItem(depth));
      ASSIGN_OR_RETURN(const GrammarSequence repeated, ParseRepetition(item));
      sequence.insert(sequence.end(), repeated.begin(), repeated.end());
      RETURN_IF_ERROR(builder_.status());
    }
    return sequence;
  }

  absl::StatusOr<GrammarElement> ParseItem(int depth) {
    if (Take('(')) {
      if (Peek() == '?' && text_.substr(at_, 2) != "?:") return Error("only (?: of such groups");
      if (Peek() == '?') at_ += 2;
      ASSIGN_OR_RETURN(std::vector<GrammarSequence> ways, ParseAlternatives(depth + 1));
      if (!Take(')')) return Error("expected ')'");
      return builder_.Choice(std::move(ways));
    }
    if (Take('[')) return ParseClass();
    if (Take('.')) {
      return Of({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}, true);
    }
    Ranges ranges;
    bool negated = false;
    if (std::string_view("*+?{}^$").find(Peek()) != std::string_view::npos) {
      return Error("nothing to repeat, or ^ and $ inside");
    }
    RETURN_IF_ERROR(ParseCharacter(ranges, negated));
    return Of(std::move(ranges), negated);
  }

  GrammarElement Of(Ranges ranges, bool negated) {
    return json_.CharacterOf(MakeCharacterClass(std::move(ranges), negated));
  }

  absl::StatusOr<int64_t> ParseCount() {
    if (Peek() < '0' || Peek() > '9') return Error("expected a number");
    int64_t value = 0;
    while (Peek() >= '0' && Peek() <= '9') {
      value = std::min<int64_t>(value * 10 + (text_[at_++] - '0'), 1 << 30);
    }
    return value;
  }

  absl::StatusOr<GrammarSequence> ParseRepetition(const GrammarElement& item) {
    int64_t least = 1, most = 1;
    if (Take('*')) {
      least = 0;
      most = -1;
    } else if (Take('+')) {
      most = -1;
    } else if (Take('?')) {
      least = 0;
    } else if (Take('{')) {
      ASSIGN_OR_RETURN(least, ParseCount());
      most = least;
      if (Take(',')) {
        most = -1;
        if (Peek() != '}') {
          ASSIGN_OR_RETURN(most, ParseCount());
        }
      }
      if (!Take('}')) return Error("expected '}'");
      if (most >= 0 && most < least) return Error("the most is below the least");
    } else {
      return GrammarSequence{item};
    }
    Take('?');  // as few as possible: which, not what
    if (std::string_view("*+?{").find(Peek()) != std::string_view::npos && at_ < text_.size()) {
      return Error("a repetition of a repetition needs a group");
    }
    return builder_.Repeat({item}, least, most);
  }

  absl::StatusOr<GrammarElement> ParseClass() {
    const bool negated = Take('^');
    shorthand_ = false;
    Ranges all;
    while (!Take(']')) {
      if (at_ >= text_.size()) return Error("the class has no end");
      Ranges ranges;
      bool other = false;
      RETURN_IF_ERROR(ParseCharacter(ranges, other));
      const bool single = !other && ranges.size() == 1 && ranges[0].first == ranges[0].last;
      if (single && Peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        Ranges last;
        RETURN_IF_ERROR(ParseCharacter(last, other));
        if (other || last.size() != 1 || last[0].first != last[0].last ||
            last[0].first < ranges[0].first) {
          return Error("this is no range");
        }
        ranges[0].last = last[0].first;
      }
      if (other) ranges = MakeCharacterClass(std::move(ranges), true);
      all.insert(all.end(), ranges.begin(), ranges.end());
    }
    // As below: what is no \w here may be one elsewhere.
    if (negated && shorthand_) all.push_back({0x80, kMostCodePoint});
    return Of(std::move(all), negated);
  }

  absl::StatusOr<char32_t> ParseHex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const auto digit = std::string_view("0123456789abcdef")
                             .find(static_cast<char>(
                                 Peek() >= 'A' && Peek() <= 'F' ? Peek() + ('a' - 'A') : Peek()));
      if (digit == std::string_view::npos) return Error("expected hexadecimal digits");
      value = value * 16 + static_cast<char32_t>(digit);
      ++at_;
    }
    return value;
  }

  // One character, or a class like \d; with `negated` all others.
  absl::Status ParseCharacter(Ranges& ranges, bool& negated) {
    if (!Take('\\')) {
      const Utf8Character character = DecodeUtf8(text_, at_);
      at_ += static_cast<size_t>(character.bytes);
      ranges = {{character.code_point, character.code_point}};
      return absl::OkStatus();
    }
    const char c = Peek();
    ++at_;
    const auto one = [&](char32_t code) { ranges = {{code, code}}; };
    negated = c == 'D' || c == 'W' || c == 'S';
    shorthand_ = shorthand_ || std::string_view("dDwWsS").find(c) != std::string_view::npos;
    if (c == 'd' || c == 'D') {
      ranges = {{'0', '9'}};
    } else if (c == 'w' || c == 'W') {
      ranges = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    } else if (c == 's' || c == 'S') {
      ranges = {{'\t', '\r'}, {' ', ' '}};
    } else if (c == 'x' || c == 'u') {
      ASSIGN_OR_RETURN(const char32_t code, ParseHex(c == 'x' ? 2 : 4));
      one(code);
    } else if (const size_t at = std::string_view("nrtfv").find(c); at != std::string_view::npos) {
      one(static_cast<char32_t>("\n\r\t\f\v"[at]));
    } else if ((c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') ||
               (c > 'z' && c < 0x7F)) {
      one(static_cast<char32_t>(c));
    } else {
      --at_;
      return Error("unknown escape");
    }
    // What other engines take for a letter, digit or space beyond ASCII is none here, so \W and
    // the like keep to ASCII, too.
    if (negated) ranges.push_back({0x80, kMostCodePoint});
    return absl::OkStatus();
  }

  const std::string_view text_;
  size_t at_ = 0;
  bool shorthand_ = false;  // \d and the like were seen
  GrammarBuilder& builder_;
  JsonRules& json_;
};

}  // namespace

absl::StatusOr<GrammarSequence> RegexRules(std::string_view pattern, GrammarBuilder& builder,
                                           JsonRules& json) {
  return Parser(pattern, builder, json).Parse();
}

}  // namespace weft
