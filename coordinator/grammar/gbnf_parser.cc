#include "coordinator/grammar/gbnf_parser.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/tokenizer/utf8.h"

namespace weft {
namespace {

constexpr int64_t kManyTimes = std::numeric_limits<int32_t>::max();

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Parser {
 public:
  Parser(std::string_view text, GrammarBuilder& builder) : text_(text), builder_(builder) {}

  // The rule of the whole text.
  absl::StatusOr<int32_t> Parse() {
    if (text_.size() > builder_.limits().source_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the grammar has ", text_.size(), " bytes, at most ", builder_.limits().source_bytes));
    }
    if (!IsValidUtf8(text_)) return absl::InvalidArgumentError("the grammar is not UTF-8");
    SkipSpace();
    while (at_ < text_.size()) RETURN_IF_ERROR(ParseRule());
    const auto root = rules_.find("root");
    if (root == rules_.end()) return absl::InvalidArgumentError("the grammar has no rule 'root'");
    return root->second;
  }

 private:
  absl::Status Error(std::string_view what) const {
    int64_t line = 1;
    size_t start = 0;
    for (size_t i = 0; i < at_; ++i) {
      if (text_[i] != '\n') continue;
      ++line;
      start = i + 1;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("grammar, line ", line, ", column ", at_ - start + 1, ": ", AbslView(what)));
  }

  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void SkipSpace() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view TakeName() {
    const size_t start = at_;
    while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  // Whether a name here is that of a new rule.
  bool AtDefinition() {
    const size_t start = at_;
    const bool named = !TakeName().empty();
    SkipSpace();
    const bool defines = named && text_.substr(at_, 3) == "::=";
    at_ = start;
    return defines;
  }

  int32_t RuleOf(std::string_view name) {
    const auto found = rules_.find(AbslView(name));
    if (found != rules_.end()) return found->second;
    return rules_[std::string(name)] = builder_.AddRule(AbslView(name));
  }

  absl::Status ParseRule() {
    if (!AtDefinition()) return Error("expected a rule: name ::= ...");
    const size_t start = at_;
    const int32_t rule = RuleOf(TakeName());
    if (rule != 0 && builder_.IsDefined(rule)) {
      at_ = start;
      return Error("this rule is defined twice");
    }
    SkipSpace();
    at_ += 3;
    SkipSpace();
    ASSIGN_OR_RETURN(std::vector<GrammarSequence> alternatives, ParseAlternatives(0));
    for (GrammarSequence& sequence : alternatives) {
      builder_.AddAlternative(rule, std::move(sequence));
    }
    if (at_ < text_.size() && !AtDefinition()) return Error("expected the next rule");
    return builder_.status();
  }

  absl::StatusOr<std::vector<GrammarSequence>> ParseAlternatives(int depth) {
    if (depth > builder_.limits().nesting) {
      return Error(absl::StrCat("more than ", builder_.limits().nesting, " nested groups"));
    }
    std::vector<GrammarSequence> alternatives;
    do {
      SkipSpace();
      ASSIGN_OR_RETURN(alternatives.emplace_back(), ParseSequence(depth));
    } while (Take('|'));
    return alternatives;
  }

  absl::StatusOr<GrammarSequence> ParseSequence(int depth) {
    GrammarSequence sequence;
    while (at_ < text_.size() && Peek() != '|' && Peek() != ')') {
      if (IsWord(Peek()) && AtDefinition()) break;
      ASSIGN_OR_RETURN(GrammarSequence item, ParseItem(depth));
      SkipSpace();
      RETURN_IF_ERROR(ParseRepetitions(item));
      sequence.insert(sequence.end(), item.begin(), item.end());
      if (std::ssize(sequence) > builder_.limits().elements) return Error("too many elements");
      RETURN_IF_ERROR(builder_.status());
    }
    return sequence;
  }

  absl::StatusOr<GrammarSequence> ParseItem(int depth) {
    if (Take('"')) return ParseText();
    if (Take('[')) return ParseClass();
    if (Take('.')) return GrammarSequence{builder_.Class(MakeCharacterClass({}, true))};
    if (Take('(')) {
      ASSIGN_OR_RETURN(std::vector<GrammarSequence> group, ParseAlternatives(depth + 1));
      if (!Take(')')) return Error("expected ')'");
      return GrammarSequence{builder_.Choice(std::move(group))};
    }
    if (IsWord(Peek())) return GrammarSequence{{true, RuleOf(TakeName())}};
    return Error("expected text, a class, a group or a rule");
  }

  // Those that follow the item, each on what is before it.
  absl::Status ParseRepetitions(GrammarSequence& item) {
    for (int count = 0;; ++count) {
      int64_t least = 0, most = -1;
      if (Take('+')) {
        least = 1;
      } else if (Take('?')) {
        most = 1;
      } else if (Take('{')) {
        RETURN_IF_ERROR(ParseBounds(least, most));
      } else if (!Take('*')) {
        return absl::OkStatus();
      }
      if (count >= builder_.limits().nesting) return Error("too many repetitions of each other");
      if (std::max(least, most) > builder_.limits().repetition) {
        return Error(absl::StrCat("more than ", builder_.limits().repetition, " repetitions"));
      }
      item = builder_.Repeat(item, least, most);
      RETURN_IF_ERROR(builder_.status());
      SkipSpace();
    }
  }

  absl::StatusOr<int64_t> ParseCount() {
    SkipSpace();
    if (Peek() < '0' || Peek() > '9') return Error("expected a number");
    int64_t value = 0;
    while (Peek() >= '0' && Peek() <= '9') {
      value = std::min(value * 10 + (text_[at_++] - '0'), kManyTimes);
    }
    SkipSpace();
    return value;
  }

  absl::Status ParseBounds(int64_t& least, int64_t& most) {
    ASSIGN_OR_RETURN(least, ParseCount());
    most = least;
    if (Take(',')) {
      SkipSpace();
      most = -1;
      if (Peek() != '}') {
        ASSIGN_OR_RETURN(most, ParseCount());
      }
    }
    if (!Take('}')) return Error("expected '}'");
    if (most >= 0 && most < least) return Error("the most repetitions are fewer than the least");
    return absl::OkStatus();
  }

  absl::StatusOr<char32_t> ParseHex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const int digit = HexDigit(Peek());
      if (digit < 0) return Error(absl::StrCat("expected ", digits, " hexadecimal digits"));
      value = value * 16 + static_cast<char32_t>(digit);
      ++at_;
    }
    if (value > kMostCodePoint || (value >= 0xD800 && value <= 0xDFFF)) {
      return Error("this is no character of Unicode");
    }
    return value;
  }

  // One character of a text or class, at_ < size.
  absl::StatusOr<char32_t> ParseCharacter() {
    if (!Take('\\')) {
      const Utf8Character character = DecodeUtf8(text_, at_);
      at_ += static_cast<size_t>(character.bytes);
      return character.code_point;
    }
    const char c = Peek();
    ++at_;
    switch (c) {
      case 'n':
        return U'\n';
      case 'r':
        return U'\r';
      case 't':
        return U'\t';
      case 'x':
        return ParseHex(2);
      case 'u':
        return ParseHex(4);
      case 'U':
        return ParseHex(8);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
      case '/':
        return static_cast<char32_t>(c);
      default:
        --at_;
        return Error("unknown escape");
    }
  }

  absl::StatusOr<GrammarSequence> ParseText() {
    GrammarSequence sequence;
    while (true) {
      if (at_ >= text_.size() || Peek() == '\n') return Error("the text has no end");
      if (Take('"')) break;
      ASSIGN_OR_RETURN(const char32_t c, ParseCharacter());
      sequence.push_back(builder_.Class(MakeCharacterClass({{c, c}}, false)));
    }
    // A repetition is of all of it.
    if (sequence.size() == 1) return sequence;
    return GrammarSequence{builder_.Choice({std::move(sequence)})};
  }

  absl::StatusOr<GrammarSequence> ParseClass() {
    const bool negated = Take('^');
    std::vector<CharacterRange> ranges;
    while (!Take(']')) {
      if (at_ >= text_.size() || Peek() == '\n') return Error("the class has no end");
      ASSIGN_OR_RETURN(const char32_t first, ParseCharacter());
      char32_t last = first;
      if (Peek() == '-' && Peek(1) != ']' && at_ + 1 < text_.size()) {
        ++at_;
        ASSIGN_OR_RETURN(last, ParseCharacter());
        if (last < first) return Error("the range is backwards");
      }
      ranges.push_back({first, last});
    }
    const CharacterClass characters = MakeCharacterClass(std::move(ranges), negated);
    if (characters.empty()) return Error("no character is in this class");
    return GrammarSequence{builder_.Class(characters)};
  }

  const std::string_view text_;
  size_t at_ = 0;
  GrammarBuilder& builder_;
  absl::flat_hash_map<std::string, int32_t> rules_;
};

}  // namespace

absl::StatusOr<GrammarElement> AddGbnf(std::string_view text, GrammarBuilder& builder) {
  ASSIGN_OR_RETURN(const int32_t root, Parser(text, builder).Parse());
  return GrammarElement{true, root};
}

absl::StatusOr<Grammar> ParseGbnf(std::string_view text, const GrammarLimits& limits) {
  GrammarBuilder builder(limits);
  ASSIGN_OR_RETURN(const int32_t root, Parser(text, builder).Parse());
  return std::move(builder).Finish(root);
}

}  // namespace weft
