// Follows one text through a grammar and says which tokens may come next.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/grammar/grammar.h"
#include "coordinator/grammar/grammar_automaton.h"
#include "coordinator/grammar/token_trie.h"
#include "coordinator/sampling/token_constraint.h"

namespace weft {

// Used by one thread at a time. Tokens may end within characters. How a text is cut into tokens
// does not matter. Errors of all methods: RESOURCE_EXHAUSTED if a limit is reached; then nothing
// has happened.
class GrammarMatcher final : public TokenConstraint {
 public:
  // Both are shared by all that follow that grammar, or have that vocabulary.
  static absl::StatusOr<std::unique_ptr<GrammarMatcher>> Create(
      std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
      const MatcherLimits& limits = {});

  // Whether token `id` may come next; a token that ends the text if the grammar may end here.
  absl::StatusOr<bool> Allows(int32_t id) override;
  // All tokens that may, of the first `size` ids.
  absl::StatusOr<TokenMask> Mask(int64_t size) override;
  // Goes on by token `id`; ends change nothing. Errors: FAILED_PRECONDITION if it is not allowed.
  absl::Status Accept(int32_t id) override;

  // Goes on by `bytes`; false, and nothing has happened, if the grammar does not allow them.
  absl::StatusOr<bool> AcceptBytes(std::string_view bytes);
  // Whether the text is complete, and whether nothing else can follow.
  bool CanEnd() const { return automaton_.CanEnd(state_); }
  bool MustEnd() const { return automaton_.MustEnd(state_); }

 private:
  GrammarMatcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
                 const MatcherLimits& limits);

  void Compact();
  absl::StatusOr<GrammarAutomaton::State> Follow(std::string_view bytes);
  absl::Status Walk(TokenMask& mask);

  const std::shared_ptr<const Grammar> grammar_;
  const std::shared_ptr<const TokenTrie> trie_;
  GrammarAutomaton automaton_;
  GrammarAutomaton::State state_ = 0;
  // Masks of states that come again and again, as within a string; of all ids of the trie.
  absl::flat_hash_map<GrammarAutomaton::State, TokenMask> masks_;
  int64_t masks_of_ = 0;  // generation of the automaton
};

}  // namespace weft
