// A grammar as an automaton over bytes whose states are made as texts need them: each is the set of
// all stacks of rules that the text so far allows. Steps that were made once are table look-ups.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/grammar/grammar.h"

namespace weft {

struct MatcherLimits {
  int64_t stacks = 4096;      // of one state: ways that an ambiguous grammar can go
  int64_t steps = 200'000;    // for one byte
  int64_t nodes = 1'000'000;  // remembered entries of stacks
  int64_t states = 40'000;    // remembered states
  int64_t work = 20'000'000;  // steps for one mask or token
};

// Used by one thread at a time.
class GrammarAutomaton {
 public:
  using State = int32_t;
  static constexpr State kDead = -1;

  // `grammar` outlives it.
  GrammarAutomaton(const Grammar& grammar, const MatcherLimits& limits);

  // The state before any text.
  absl::StatusOr<State> Start();
  // What follows `state` by one byte of UTF-8; kDead: nothing can. States stay valid until Compact.
  // Errors: RESOURCE_EXHAUSTED naming the limit.
  absl::StatusOr<State> Step(State state, uint8_t byte);
  // Whether the text may end here.
  bool CanEnd(State state) const { return states_[state].can_end; }
  // Whether nothing can follow.
  bool MustEnd(State state) const;

  // To be called before each mask or token: work is counted from here, and if much is remembered
  // all states but this are forgotten. Returns its new number.
  State Compact(State state);
  // Changes whenever states are forgotten.
  int64_t generation() const { return generation_; }

 private:
  // The beginning of a character: `left` more bytes of `bytes` belong to it.
  struct Partial {
    char32_t value = 0;
    uint8_t left = 0;
    uint8_t bytes = 0;
    friend bool operator==(const Partial&, const Partial&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Partial& p) {
      return H::combine(std::move(h), p.value, p.left, p.bytes);
    }
  };
  struct StateKey {
    std::vector<int32_t> stacks;  // ascending
    Partial partial;
    friend bool operator==(const StateKey&, const StateKey&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const StateKey& k) {
      return H::combine(std::move(h), k.stacks, k.partial);
    }
  };
  struct StateData {
    StateKey key;
    bool can_end = false;
    std::vector<State> ascii;                             // by class of byte
    std::unique_ptr<std::array<State, 128>> above_ascii;  // once it is needed
  };
  // What is to be matched next, and below it what after that.
  struct Node {
    int32_t position = 0;
    int32_t below = 0;
    friend bool operator==(const Node&, const Node&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Node& n) {
      return H::combine(std::move(h), n.position, n.below);
    }
  };

  absl::Status Spend(int64_t& steps);
  absl::StatusOr<int32_t> Intern(Node node);
  absl::StatusOr<State> Intern(StateKey key);
  // Adds what `start` leads to without a character: stacks whose top is a class, or the empty one.
  absl::Status Expand(Node start, absl::flat_hash_set<Node>& seen, std::vector<int32_t>& stacks,
                      int64_t& steps);
  absl::StatusOr<State> Move(State state, uint8_t byte);
  absl::StatusOr<State> MoveBy(const StateKey& from, char32_t first, char32_t last);
  int32_t CopyNode(int32_t node, const std::vector<Node>& old, std::vector<int32_t>& copies);
  void FindByteClasses();

  const Grammar& grammar_;
  const MatcherLimits limits_;
  std::array<uint8_t, 128> byte_class_ = {};
  int32_t byte_classes_ = 0;
  std::vector<Node> nodes_;
  absl::flat_hash_map<Node, int32_t> node_ids_;
  std::vector<StateData> states_;
  absl::flat_hash_map<StateKey, State> state_ids_;
  int64_t work_ = 0;
  int64_t generation_ = 0;
};

}  // namespace weft
