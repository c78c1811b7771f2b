#include "coordinator/grammar/grammar.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr char32_t kFirstSurrogate = 0xD800;
constexpr char32_t kLastSurrogate = 0xDFFF;

// An edge of the left corner: `rule` may begin with `to`; at its end only, with nothing behind.
struct Corner {
  int32_t to = 0;
  bool last = false;
};

// Strongly connected parts of a graph, numbered; by Tarjan, without recursion.
class Components {
 public:
  explicit Components(const std::vector<std::vector<Corner>>& edges)
      : edges_(edges), index_(edges.size(), -1), low_(edges.size(), 0), part_(edges.size(), -1) {
    for (size_t node = 0; node < edges.size(); ++node) {
      if (index_[node] < 0) Visit(static_cast<int32_t>(node));
    }
  }
  int32_t of(int32_t node) const { return part_[node]; }

 private:
  struct Frame {
    int32_t node = 0;
    size_t edge = 0;
  };

  void Open(int32_t node) {
    index_[node] = low_[node] = next_++;
    open_.push_back(node);
    frames_.push_back({node, 0});
  }

  void Visit(int32_t start) {
    Open(start);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const int32_t node = frame.node;
      if (frame.edge < edges_[node].size()) {
        const int32_t to = edges_[node][frame.edge++].to;
        if (index_[to] < 0) {
          Open(to);
        } else if (part_[to] < 0) {
          low_[node] = std::min(low_[node], index_[to]);
        }
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty()) {
        low_[frames_.back().node] = std::min(low_[frames_.back().node], low_[node]);
      }
      if (low_[node] == index_[node]) Close(node);
    }
  }

  void Close(int32_t node) {
    int32_t member = -1;
    do {
      member = open_.back();
      open_.pop_back();
      part_[member] = parts_;
    } while (member != node);
    ++parts_;
  }

  const std::vector<std::vector<Corner>>& edges_;
  std::vector<int32_t> index_, low_, part_, open_;
  std::vector<Frame> frames_;
  int32_t next_ = 0, parts_ = 0;
};

}  // namespace

CharacterClass MakeCharacterClass(std::vector<CharacterRange> ranges, bool negated) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CharacterRange& a, const CharacterRange& b) { return a.first < b.first; });
  std::vector<CharacterRange> joined;
  for (CharacterRange range : ranges) {
    range.last = std::min(range.last, kMostCodePoint);
    if (range.first > range.last) continue;
    if (!joined.empty() && range.first <= joined.back().last + 1) {
      joined.back().last = std::max(joined.back().last, range.last);
    } else {
      joined.push_back(range);
    }
  }
  if (negated) {
    std::vector<CharacterRange> others;
    char32_t next = 0;
    for (const CharacterRange& range : joined) {
      if (range.first > next) others.push_back({next, range.first - 1});
      next = range.last + 1;
    }
    if (next <= kMostCodePoint) others.push_back({next, kMostCodePoint});
    joined = std::move(others);
  }
  CharacterClass result;
  for (const CharacterRange& range : joined) {
    if (range.last < kFirstSurrogate || range.first > kLastSurrogate) {
      result.push_back(range);
      continue;
    }
    if (range.first < kFirstSurrogate) result.push_back({range.first, kFirstSurrogate - 1});
    if (range.last > kLastSurrogate) result.push_back({kLastSurrogate + 1, range.last});
  }
  return result;
}

std::string TokenBytes(int32_t id) {
  const char32_t value = kFirstTokenCharacter + static_cast<char32_t>(id);
  std::string bytes(1, static_cast<char>(0xF8 | (value >> 24)));
  for (int shift = 18; shift >= 0; shift -= 6) {
    bytes.push_back(static_cast<char>(0x80 | ((value >> shift) & 0x3F)));
  }
  return bytes;
}

bool Intersects(absl::Span<const CharacterRange> sorted, char32_t first, char32_t last) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), first,
                                   [](const CharacterRange& r, char32_t c) { return r.last < c; });
  return at != sorted.end() && at->first <= last;
}

void GrammarBuilder::Refuse(absl::string_view what, int64_t limit) {
  status_.Update(absl::InvalidArgumentError(
      absl::StrCat("the grammar is too large: more than ", limit, " ", what)));
}

int32_t GrammarBuilder::AddRule(absl::string_view name) {
  if (std::ssize(rules_) >= limits_.rules) {
    Refuse("rules", limits_.rules);
    return 0;
  }
  if (rules_.empty()) rules_.push_back({"nothing", {{}}});  // rule 0, for when limits are exceeded
  rules_.push_back({std::string(name), {}});
  return static_cast<int32_t>(rules_.size()) - 1;
}

void GrammarBuilder::AddAlternative(int32_t rule, GrammarSequence sequence) {
  elements_ += std::ssize(sequence) + 1;
  if (elements_ > limits_.elements) return Refuse("elements", limits_.elements);
  if (rule == 0) return;
  rules_[rule].alternatives.push_back(std::move(sequence));
}

GrammarElement GrammarBuilder::Class(const CharacterClass& characters) {
  // A grammar repeats few classes often.
  for (size_t back = 1; back <= std::min<size_t>(classes_.size(), 64); ++back) {
    const size_t at = classes_.size() - back;
    if (classes_[at] == characters) return {false, static_cast<int32_t>(at)};
  }
  if (std::ssize(classes_) >= limits_.classes) {
    Refuse("character classes", limits_.classes);
    return {false, 0};
  }
  classes_.push_back(characters);
  return {false, static_cast<int32_t>(classes_.size()) - 1};
}

GrammarElement GrammarBuilder::Token(int32_t id) {
  const char32_t value = kFirstTokenCharacter + static_cast<char32_t>(id);
  return Class({{value, value}});
}

GrammarSequence GrammarBuilder::Text(absl::string_view utf8) {
  GrammarSequence sequence;
  for (size_t at = 0; at < utf8.size();) {
    // The text is valid UTF-8: parsers have seen to that.
    const auto lead = static_cast<uint8_t>(utf8[at]);
    const size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t point = bytes == 1 ? lead : lead & (0xFF >> (bytes + 1));
    for (size_t i = 1; i < bytes && at + i < utf8.size(); ++i) {
      point = (point << 6) | (static_cast<uint8_t>(utf8[at + i]) & 0x3F);
    }
    at += bytes;
    sequence.push_back(Class({{point, point}}));
    if (std::ssize(sequence) > limits_.elements) {
      Refuse("elements", limits_.elements);
      break;
    }
  }
  return sequence;
}

GrammarElement GrammarBuilder::Choice(std::vector<GrammarSequence> alternatives) {
  if (alternatives.size() == 1 && alternatives[0].size() == 1) return alternatives[0][0];
  const int32_t rule = AddRule("group");
  for (GrammarSequence& sequence : alternatives) AddAlternative(rule, std::move(sequence));
  return {true, rule};
}

GrammarSequence GrammarBuilder::Repeat(const GrammarSequence& what, int64_t least, int64_t most) {
  if (std::max(least, most) > limits_.repetition) {
    Refuse("repetitions of one thing", limits_.repetition);
    return {};
  }
  const GrammarElement one = Choice({what});
  GrammarSequence result(static_cast<size_t>(least), one);
  if (most < 0) {
    const int32_t more = AddRule("repetition");
    AddAlternative(more, {one, {true, more}});
    AddAlternative(more, {});
    result.push_back({true, more});
    return result;
  }
  // From the inside out: nothing or one, and behind it the same with one less.
  GrammarSequence rest;
  for (int64_t i = least; i < most && status_.ok(); ++i) {
    GrammarSequence longer = {one};
    longer.insert(longer.end(), rest.begin(), rest.end());
    rest = {Choice({std::move(longer), {}})};
  }
  result.insert(result.end(), rest.begin(), rest.end());
  return result;
}

absl::Status GrammarBuilder::RemoveUnproductive(int32_t root) {
  // Rules that produce some text, by counting what alternatives still wait for.
  std::vector<bool> productive(rules_.size(), false);
  std::vector<std::vector<std::pair<int32_t, int32_t>>> users(rules_.size());
  std::vector<std::vector<int64_t>> waiting(rules_.size());
  std::vector<int32_t> ready;
  const auto finish = [&](int32_t rule) {
    if (productive[rule]) return;
    productive[rule] = true;
    ready.push_back(rule);
  };
  for (int32_t r = 0; r < static_cast<int32_t>(rules_.size()); ++r) {
    for (const GrammarSequence& sequence : rules_[r].alternatives) {
      int64_t open = 0;
      for (const GrammarElement& element : sequence) {
        const bool waits = element.is_rule || classes_[element.index].empty();
        open += waits ? 1 : 0;
        if (element.is_rule) {
          users[element.index].emplace_back(r, static_cast<int32_t>(waiting[r].size()));
        }
      }
      waiting[r].push_back(open);
      if (open == 0) finish(r);
    }
  }
  while (!ready.empty()) {
    const int32_t rule = ready.back();
    ready.pop_back();
    for (const auto& [user, alternative] : users[rule]) {
      if (--waiting[user][alternative] == 0) finish(user);
    }
  }
  if (!productive[root]) {
    return absl::InvalidArgumentError(
        absl::StrCat("rule '", rules_[root].name, "' can never be completed by any text"));
  }
  for (size_t r = 0; r < rules_.size(); ++r) {
    std::vector<GrammarSequence> kept;
    for (size_t a = 0; a < rules_[r].alternatives.size(); ++a) {
      if (waiting[r][a] == 0) kept.push_back(std::move(rules_[r].alternatives[a]));
    }
    rules_[r].alternatives = std::move(kept);
  }
  return absl::OkStatus();
}

std::vector<bool> GrammarBuilder::FindNullable() const {
  std::vector<bool> nullable(rules_.size(), false);
  std::vector<std::vector<std::pair<int32_t, int32_t>>> users(rules_.size());
  std::vector<std::vector<int64_t>> waiting(rules_.size());
  std::vector<int32_t> ready;
  const auto finish = [&](int32_t rule) {
    if (nullable[rule]) return;
    nullable[rule] = true;
    ready.push_back(rule);
  };
  for (int32_t r = 0; r < static_cast<int32_t>(rules_.size()); ++r) {
    for (const GrammarSequence& sequence : rules_[r].alternatives) {
      for (const GrammarElement& element : sequence) {
        if (element.is_rule) {
          users[element.index].emplace_back(r, static_cast<int32_t>(waiting[r].size()));
        }
      }
      // A character is waited for in vain.
      waiting[r].push_back(std::ssize(sequence));
      if (sequence.empty()) finish(r);
    }
  }
  while (!ready.empty()) {
    const int32_t rule = ready.back();
    ready.pop_back();
    for (const auto& [user, alternative] : users[rule]) {
      if (--waiting[user][alternative] == 0) finish(user);
    }
  }
  return nullable;
}

// A rule that begins with itself and has something behind would pile up what is behind. One that
// has nothing behind (the repetition of what may be empty) piles up nothing.
absl::Status GrammarBuilder::CheckLeftRecursion() const {
  const std::vector<bool> nullable = FindNullable();
  std::vector<std::vector<Corner>> corners(rules_.size());
  for (size_t r = 0; r < rules_.size(); ++r) {
    for (const GrammarSequence& sequence : rules_[r].alternatives) {
      for (size_t i = 0; i < sequence.size() && sequence[i].is_rule; ++i) {
        corners[r].push_back({sequence[i].index, i + 1 == sequence.size()});
        if (!nullable[sequence[i].index]) break;
      }
    }
  }
  const Components components(corners);
  for (size_t r = 0; r < rules_.size(); ++r) {
    for (const Corner& corner : corners[r]) {
      if (corner.last || components.of(static_cast<int32_t>(r)) != components.of(corner.to)) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("rule '", rules_[r].name,
                       "' is left-recursive: it can begin with itself; write it as a repetition"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Grammar> GrammarBuilder::Finish(int32_t root) && {
  RETURN_IF_ERROR(status_);
  for (const Rule& rule : rules_) {
    if (!rule.alternatives.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat("rule '", rule.name, "' is not defined"));
  }
  RETURN_IF_ERROR(RemoveUnproductive(root));
  RETURN_IF_ERROR(CheckLeftRecursion());
  Grammar grammar;
  grammar.classes = std::move(classes_);
  grammar.root = root;
  for (const Rule& rule : rules_) {
    std::vector<int32_t>& starts = grammar.alternatives.emplace_back();
    for (const GrammarSequence& sequence : rule.alternatives) {
      starts.push_back(static_cast<int32_t>(grammar.positions.size()));
      for (const GrammarElement& element : sequence) {
        grammar.positions.push_back(
            {element.is_rule ? GrammarPosition::Kind::kRule : GrammarPosition::Kind::kClass,
             element.index});
      }
      grammar.positions.push_back({});
    }
  }
  return grammar;
}

}  // namespace weft
