#include "coordinator/grammar/grammar_automaton.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

// Below a stack's last entry; as a stack: the text is complete.
constexpr int32_t kNothing = -1;
constexpr GrammarAutomaton::State kUnknown = -2;

absl::Status Exceeded(absl::string_view what, int64_t limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the grammar is too ambiguous or too large here: more than ", limit, " ", what));
}

// How many bytes a character with this first byte has; 0: it cannot be the first of more than one.
// Forms that are too long are out of reach below.
uint8_t BytesOfLead(uint8_t lead) {
  if (lead < 0xC2 || lead > 0xFB) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  if (lead < 0xF8) return lead <= 0xF4 ? 4 : 0;
  return 5;  // control tokens
}

// The code points whose UTF-8 of `bytes` bytes starts with what made `value`, `left` bytes before
// its end; first > last if there are none.
CharacterRange Reachable(char32_t value, int left, int bytes) {
  static constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000, kFirstTokenCharacter};
  const char32_t low = value << (6 * left);
  const char32_t high = low | ((char32_t{1} << (6 * left)) - 1);
  return {std::max(low, kLeast[bytes]), bytes == 5 ? high : std::min(high, kMostCodePoint)};
}

}  // namespace

GrammarAutomaton::GrammarAutomaton(const Grammar& grammar, const MatcherLimits& limits)
    : grammar_(grammar), limits_(limits) {
  FindByteClasses();
}

// Bytes that are in the same classes lead to the same states.
void GrammarAutomaton::FindByteClasses() {
  // Where some class begins or ends: few grammars tell more than some dozens of bytes apart.
  std::array<bool, 129> cuts = {};
  for (const CharacterClass& characters : grammar_.classes) {
    for (const CharacterRange& range : characters) {
      if (range.first < 128) cuts[range.first] = true;
      if (range.last < 128) cuts[range.last + 1] = true;
    }
  }
  uint8_t current = 0;
  for (int byte = 0; byte < 128; ++byte) {
    if (byte > 0 && cuts[byte]) ++current;
    byte_class_[byte] = current;
  }
  byte_classes_ = current + 1;
}

absl::Status GrammarAutomaton::Spend(int64_t& steps) {
  if (++steps > limits_.steps) return Exceeded("steps for one byte", limits_.steps);
  if (++work_ > limits_.work) return Exceeded("steps for one token", limits_.work);
  return absl::OkStatus();
}

absl::StatusOr<int32_t> GrammarAutomaton::Intern(Node node) {
  const auto [at, added] = node_ids_.try_emplace(node, static_cast<int32_t>(nodes_.size()));
  if (!added) return at->second;
  if (std::ssize(nodes_) >= limits_.nodes) {
    node_ids_.erase(at);
    return Exceeded("entries of stacks", limits_.nodes);
  }
  nodes_.push_back(node);
  return static_cast<int32_t>(nodes_.size()) - 1;
}

absl::StatusOr<GrammarAutomaton::State> GrammarAutomaton::Intern(StateKey key) {
  if (key.stacks.empty()) return kDead;
  const auto found = state_ids_.find(key);
  if (found != state_ids_.end()) return found->second;
  if (std::ssize(states_) >= limits_.states) return Exceeded("states", limits_.states);
  const auto id = static_cast<State>(states_.size());
  StateData& data = states_.emplace_back();
  data.can_end = key.partial.left == 0 && key.stacks[0] == kNothing;
  data.ascii.assign(static_cast<size_t>(byte_classes_), kUnknown);
  data.key = key;
  state_ids_.emplace(std::move(key), id);
  return id;
}

absl::Status GrammarAutomaton::Expand(Node start, absl::flat_hash_set<Node>& seen,
                                      std::vector<int32_t>& stacks, int64_t& steps) {
  std::vector<Node> open = {start};
  while (!open.empty()) {
    const Node node = open.back();
    open.pop_back();
    RETURN_IF_ERROR(Spend(steps));
    if (!seen.insert(node).second) continue;
    const GrammarPosition& position = grammar_.positions[node.position];
    if (position.kind == GrammarPosition::Kind::kClass) {
      ASSIGN_OR_RETURN(const int32_t stack, Intern(node));
      stacks.push_back(stack);
    } else if (position.kind == GrammarPosition::Kind::kEnd) {
      if (node.below == kNothing) {
        stacks.push_back(kNothing);
      } else {
        open.push_back(nodes_[node.below]);
      }
    } else {
      // A rule at the end of its sequence returns to where the sequence does.
      int32_t below = node.below;
      if (grammar_.positions[node.position + 1].kind != GrammarPosition::Kind::kEnd) {
        ASSIGN_OR_RETURN(below, Intern(Node{node.position + 1, node.below}));
      }
      for (const int32_t alternative : grammar_.alternatives[position.index]) {
        RETURN_IF_ERROR(Spend(steps));
        open.push_back({alternative, below});
      }
    }
    if (std::ssize(stacks) > limits_.stacks) return Exceeded("alive stacks", limits_.stacks);
  }
  return absl::OkStatus();
}

absl::StatusOr<GrammarAutomaton::State> GrammarAutomaton::Start() {
  StateKey key;
  absl::flat_hash_set<Node> seen;
  int64_t steps = 0;
  for (const int32_t alternative : grammar_.alternatives[grammar_.root]) {
    RETURN_IF_ERROR(Expand({alternative, kNothing}, seen, key.stacks, steps));
  }
  std::sort(key.stacks.begin(), key.stacks.end());
  key.stacks.erase(std::unique(key.stacks.begin(), key.stacks.end()), key.stacks.end());
  return Intern(std::move(key));
}

absl::StatusOr<GrammarAutomaton::State> GrammarAutomaton::MoveBy(const StateKey& from,
                                                                 char32_t first, char32_t last) {
  StateKey key;
  absl::flat_hash_set<Node> seen;
  int64_t steps = 0;
  for (const int32_t stack : from.stacks) {
    if (stack == kNothing) continue;
    RETURN_IF_ERROR(Spend(steps));
    const Node node = nodes_[stack];
    const GrammarPosition& position = grammar_.positions[node.position];
    if (!Intersects(grammar_.classes[position.index], first, last)) continue;
    RETURN_IF_ERROR(Expand({node.position + 1, node.below}, seen, key.stacks, steps));
  }
  std::sort(key.stacks.begin(), key.stacks.end());
  key.stacks.erase(std::unique(key.stacks.begin(), key.stacks.end()), key.stacks.end());
  return Intern(std::move(key));
}

absl::StatusOr<GrammarAutomaton::State> GrammarAutomaton::Move(State state, uint8_t byte) {
  const StateKey from = states_[state].key;  // states_ may move
  Partial partial = from.partial;
  if (partial.left == 0) {
    if (byte < 0x80) return MoveBy(from, byte, byte);
    partial.bytes = BytesOfLead(byte);
    if (partial.bytes == 0) return kDead;
    partial.left = static_cast<uint8_t>(partial.bytes - 1);
    partial.value = byte & (0x7F >> partial.bytes);
  } else {
    if ((byte & 0xC0) != 0x80) return kDead;
    partial.value = (partial.value << 6) | (byte & 0x3F);
    --partial.left;
  }
  const CharacterRange range = Reachable(partial.value, partial.left, partial.bytes);
  if (range.first > range.last) return kDead;
  if (partial.left == 0) return MoveBy(from, range.first, range.last);
  StateKey key;
  key.partial = partial;
  int64_t steps = 0;
  for (const int32_t stack : from.stacks) {
    if (stack == kNothing) continue;
    RETURN_IF_ERROR(Spend(steps));
    const GrammarPosition& position = grammar_.positions[nodes_[stack].position];
    if (Intersects(grammar_.classes[position.index], range.first, range.last)) {
      key.stacks.push_back(stack);
    }
  }
  return Intern(std::move(key));
}

absl::StatusOr<GrammarAutomaton::State> GrammarAutomaton::Step(State state, uint8_t byte) {
  if (byte < 0x80) {
    const State known = states_[state].ascii[byte_class_[byte]];
    if (known != kUnknown) return known;
    ASSIGN_OR_RETURN(const State next, Move(state, byte));
    return states_[state].ascii[byte_class_[byte]] = next;
  }
  if (states_[state].above_ascii == nullptr) {
    states_[state].above_ascii = std::make_unique<std::array<State, 128>>();
    states_[state].above_ascii->fill(kUnknown);
  }
  const State known = (*states_[state].above_ascii)[byte - 0x80];
  if (known != kUnknown) return known;
  ASSIGN_OR_RETURN(const State next, Move(state, byte));
  return (*states_[state].above_ascii)[byte - 0x80] = next;
}

bool GrammarAutomaton::MustEnd(State state) const {
  const StateData& data = states_[state];
  return data.can_end && data.key.stacks.size() == 1;
}

GrammarAutomaton::State GrammarAutomaton::Compact(State state) {
  work_ = 0;
  const bool much =
      std::ssize(states_) > limits_.states / 2 || std::ssize(nodes_) > limits_.nodes / 2;
  if (!much) return state;
  ++generation_;
  StateKey key = states_[state].key;
  std::vector<Node> old;
  old.swap(nodes_);
  node_ids_.clear();
  states_.clear();
  state_ids_.clear();
  std::vector<int32_t> copies(old.size(), kNothing);
  for (int32_t& stack : key.stacks) stack = CopyNode(stack, old, copies);
  std::sort(key.stacks.begin(), key.stacks.end());
  const absl::StatusOr<State> copied = Intern(std::move(key));
  return copied.ok() ? *copied : kDead;  // one state is below every limit
}

int32_t GrammarAutomaton::CopyNode(int32_t node, const std::vector<Node>& old,
                                   std::vector<int32_t>& copies) {
  std::vector<int32_t> path;  // down to what is copied
  while (node != kNothing && copies[node] == kNothing) {
    path.push_back(node);
    node = old[node].below;
  }
  int32_t below = node == kNothing ? kNothing : copies[node];
  for (; !path.empty(); path.pop_back()) {
    const Node copy = {old[path.back()].position, below};
    below = static_cast<int32_t>(nodes_.size());
    nodes_.push_back(copy);
    node_ids_.emplace(copy, below);
    copies[path.back()] = below;
  }
  return below;
}

}  // namespace weft
