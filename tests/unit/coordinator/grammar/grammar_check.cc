#include "tests/unit/coordinator/grammar/grammar_check.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace weft {

std::shared_ptr<const TokenTrie> MakeTrie(const std::vector<std::string>& words) {
  const auto size = static_cast<int32_t>(words.size()) + 257;
  return std::make_shared<const TokenTrie>(
      size,
      [&](int32_t id) {
        return id < 256 ? std::string(1, static_cast<char>(id))
                        : words[static_cast<size_t>(id) - 256];
      },
      [&](int32_t id) { return id == size - 1; });
}

absl::StatusOr<bool> Produces(const Grammar& grammar, std::string_view text) {
  ASSIGN_OR_RETURN(const std::unique_ptr<GrammarMatcher> matcher,
                   GrammarMatcher::Create(std::make_shared<const Grammar>(grammar), MakeTrie({})));
  ASSIGN_OR_RETURN(const bool follows, matcher->AcceptBytes(text));
  return follows && matcher->CanEnd();
}

absl::StatusOr<std::string> RandomText(GrammarMatcher& matcher, const TokenTrie& trie,
                                       int64_t patience, Random& random) {
  std::string text;
  for (int64_t step = 0; step < 20 * patience; ++step) {
    if (matcher.MustEnd() || (step >= patience && matcher.CanEnd())) return text;
    ASSIGN_OR_RETURN(const TokenMask mask, matcher.Mask(trie.size()));
    std::vector<int32_t> ids;
    for (int32_t id = 0; id < trie.size(); ++id) {
      if (mask.Contains(id)) ids.push_back(id);
    }
    if (ids.empty()) return absl::InternalError(absl::StrCat("a dead end after ", text));
    const int32_t id = ids[static_cast<size_t>(random.Between(0, std::ssize(ids) - 1))];
    if (trie.IsEnd(id)) return text;
    RETURN_IF_ERROR(matcher.Accept(id));
    text += trie.BytesOf(id);
  }
  return absl::DeadlineExceededError("no end came");
}

void CheckGrammar(const Grammar& grammar, uint64_t seed) {
  Random random(seed);
  const std::shared_ptr<const TokenTrie> trie =
      MakeTrie({"ab", "\"a", "{\"", "\xC3", "\xC3\xA9", "\xE2\x82", "10"});
  MatcherLimits limits;
  limits.stacks = 256;
  limits.steps = 5'000;
  limits.work = 50'000;
  limits.states = 500;
  limits.nodes = 5'000;
  auto made = GrammarMatcher::Create(std::make_shared<const Grammar>(grammar), trie, limits);
  if (!made.ok()) return;
  GrammarMatcher& matcher = **made;
  for (int step = 0; step < 10; ++step) {
    const absl::StatusOr<TokenMask> mask = matcher.Mask(trie->size());
    if (!mask.ok()) return;
    std::vector<int32_t> ids;
    for (int32_t id = 0; id < trie->size(); ++id) {
      const absl::StatusOr<bool> allows = matcher.Allows(id);
      WEFT_CHECK(!allows.ok() || *allows == mask->Contains(id));
      if (mask->Contains(id) && !trie->IsEnd(id)) ids.push_back(id);
    }
    if (ids.empty()) {
      WEFT_CHECK(matcher.CanEnd() || grammar.classes.empty() || step > 0);
      return;
    }
    const absl::Status status =
        matcher.Accept(ids[static_cast<size_t>(random.Between(0, std::ssize(ids) - 1))]);
    if (!status.ok()) return;
  }
}

}  // namespace weft
