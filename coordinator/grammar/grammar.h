// A context-free grammar over characters, ready for matching: what a text may be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

// Whatever a grammar was read from: more is refused, never tried.
struct GrammarLimits {
  size_t source_bytes = size_t{1} << 20;
  int nesting = 200;            // groups, schemas or expressions inside each other
  int64_t rules = 100'000;      // also those that groups and repetitions make
  int64_t elements = 400'000;   // characters and references of all rules
  int64_t classes = 20'000;     // different sets of characters
  int64_t repetition = 20'000;  // the largest m of {n,m}
};

inline constexpr char32_t kMostCodePoint = 0x10FFFF;

// A control token stands in a grammar as a character of its own behind those of Unicode, so that no
// text can be taken for it, and in the trie as the UTF-8 that such a number would have (5 bytes).
inline constexpr char32_t kFirstTokenCharacter = 0x200000;
inline constexpr int32_t kMostToken = 0x1FFFFFF;
std::string TokenBytes(int32_t id);

// Code points from `first` to `last`.
struct CharacterRange {
  char32_t first = 0;
  char32_t last = 0;
  friend bool operator==(const CharacterRange&, const CharacterRange&) = default;
};

// Ranges in order that neither touch nor hold surrogates.
using CharacterClass = std::vector<CharacterRange>;

// In order and joined, without surrogates and beyond kMostCodePoint; with `negated` all others.
CharacterClass MakeCharacterClass(std::vector<CharacterRange> ranges, bool negated);
// Whether the class has one of [first, last].
bool Intersects(absl::Span<const CharacterRange> sorted, char32_t first, char32_t last);

// One step of an alternative: a character of a class, or a rule.
struct GrammarElement {
  bool is_rule = false;
  int32_t index = 0;
  friend bool operator==(const GrammarElement&, const GrammarElement&) = default;
};
using GrammarSequence = std::vector<GrammarElement>;

// An element of the flat form; the end of a sequence is of its own.
struct GrammarPosition {
  enum class Kind : uint8_t { kEnd, kClass, kRule };
  Kind kind = Kind::kEnd;
  int32_t index = 0;
};

// Immutable. Rules that can produce no text are gone; there is no left recursion.
struct Grammar {
  std::vector<CharacterClass> classes;
  std::vector<GrammarPosition> positions;          // sequences, each with its end
  std::vector<std::vector<int32_t>> alternatives;  // by rule: where its sequences begin
  int32_t root = 0;
};

// Rules as they are read, then the grammar.
class GrammarBuilder {
 public:
  explicit GrammarBuilder(const GrammarLimits& limits) : limits_(limits) {}

  const GrammarLimits& limits() const { return limits_; }
  // The first limit that was exceeded: RESOURCE_EXHAUSTED as INVALID_ARGUMENT, since it is the
  // caller's text that is too much. Everything may go on until somebody asks.
  const absl::Status& status() const { return status_; }

  // A rule without alternatives yet. `name` is for errors.
  int32_t AddRule(absl::string_view name);
  void AddAlternative(int32_t rule, GrammarSequence sequence);
  bool IsDefined(int32_t rule) const { return !rules_[rule].alternatives.empty(); }

  GrammarElement Class(const CharacterClass& characters);
  // The characters of UTF-8 text.
  GrammarSequence Text(absl::string_view utf8);
  // A control token, 0 to kMostToken.
  GrammarElement Token(int32_t id);
  // One of these.
  GrammarElement Choice(std::vector<GrammarSequence> alternatives);
  // `what` at least `least` times and at most `most`; negative: without end.
  GrammarSequence Repeat(const GrammarSequence& what, int64_t least, int64_t most);
  GrammarSequence Optional(const GrammarSequence& what) { return Repeat(what, 0, 1); }

  // Errors: INVALID_ARGUMENT naming the rule: one without definition, left recursion, a root that
  // produces no text, a limit.
  absl::StatusOr<Grammar> Finish(int32_t root) &&;

 private:
  struct Rule {
    std::string name;
    std::vector<GrammarSequence> alternatives;
  };

  void Refuse(absl::string_view what, int64_t limit);
  absl::Status RemoveUnproductive(int32_t root);
  absl::Status CheckLeftRecursion() const;
  std::vector<bool> FindNullable() const;

  GrammarLimits limits_;
  absl::Status status_;
  std::vector<Rule> rules_;
  std::vector<CharacterClass> classes_;
  int64_t elements_ = 0;
};

}  // namespace weft
