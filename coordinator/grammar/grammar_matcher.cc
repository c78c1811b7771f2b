#include "coordinator/grammar/grammar_matcher.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr size_t kMostMasks = 64;  // 16 KB each for 128k tokens

}  // namespace

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar,
                               std::shared_ptr<const TokenTrie> trie, const MatcherLimits& limits)
    : grammar_(std::move(grammar)), trie_(std::move(trie)), automaton_(*grammar_, limits) {}

absl::StatusOr<std::unique_ptr<GrammarMatcher>> GrammarMatcher::Create(
    std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
    const MatcherLimits& limits) {
  std::unique_ptr<GrammarMatcher> matcher =
      absl::WrapUnique(new GrammarMatcher(std::move(grammar), std::move(trie), limits));
  ASSIGN_OR_RETURN(matcher->state_, matcher->automaton_.Start());
  if (matcher->state_ == GrammarAutomaton::kDead) {
    return absl::InvalidArgumentError("the grammar allows no text");
  }
  return matcher;
}

void GrammarMatcher::Compact() {
  state_ = automaton_.Compact(state_);
  if (masks_of_ != automaton_.generation() || masks_.size() >= kMostMasks) masks_.clear();
  masks_of_ = automaton_.generation();
}

absl::StatusOr<GrammarAutomaton::State> GrammarMatcher::Follow(std::string_view bytes) {
  GrammarAutomaton::State state = state_;
  for (const char byte : bytes) {
    ASSIGN_OR_RETURN(state, automaton_.Step(state, static_cast<uint8_t>(byte)));
    if (state == GrammarAutomaton::kDead) break;
  }
  return state;
}

absl::StatusOr<bool> GrammarMatcher::Allows(int32_t id) {
  if (trie_->IsEnd(id)) return CanEnd();
  const std::string_view bytes = trie_->BytesOf(id);
  if (bytes.empty()) return false;
  Compact();
  ASSIGN_OR_RETURN(const GrammarAutomaton::State next, Follow(bytes));
  return next != GrammarAutomaton::kDead;
}

absl::Status GrammarMatcher::Accept(int32_t id) {
  const bool ends = trie_->IsEnd(id);
  if (ends && CanEnd()) return absl::OkStatus();
  const std::string_view bytes = trie_->BytesOf(id);
  bool allowed = !bytes.empty() && !ends;
  if (allowed) {
    ASSIGN_OR_RETURN(allowed, AcceptBytes(bytes));
  }
  if (allowed) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("token ", id, " is not allowed by the grammar"));
}

absl::StatusOr<bool> GrammarMatcher::AcceptBytes(std::string_view bytes) {
  Compact();
  ASSIGN_OR_RETURN(const GrammarAutomaton::State next, Follow(bytes));
  if (next == GrammarAutomaton::kDead) return false;
  state_ = next;
  return true;
}

absl::Status GrammarMatcher::Walk(TokenMask& mask) {
  const absl::Span<const TokenTrie::Node> nodes = trie_->nodes();
  std::array<GrammarAutomaton::State, TokenTrie::kLongestToken + 1> path;  // by depth
  path[0] = state_;
  size_t at = 0;
  while (nodes[at].depth > 0) {
    const TokenTrie::Node& node = nodes[at];
    ASSIGN_OR_RETURN(const GrammarAutomaton::State next,
                     automaton_.Step(path[node.depth - 1], node.byte));
    if (next == GrammarAutomaton::kDead) {
      at = static_cast<size_t>(node.skip);
      continue;
    }
    path[node.depth] = next;
    for (int32_t t = node.first_token; t < nodes[at + 1].first_token; ++t) {
      mask.Add(trie_->token_ids()[t]);
    }
    ++at;
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenMask> GrammarMatcher::Mask(int64_t size) {
  Compact();
  auto found = masks_.find(state_);
  if (found == masks_.end()) {
    TokenMask mask(trie_->size());
    RETURN_IF_ERROR(Walk(mask));
    if (CanEnd()) {
      for (const int32_t id : trie_->end_tokens()) mask.Add(id);
    }
    found = masks_.emplace(state_, std::move(mask)).first;
  }
  if (size == trie_->size()) return found->second;
  TokenMask cut(size);
  for (int64_t id = 0; id < std::min<int64_t>(size, trie_->size()); ++id) {
    if (found->second.Contains(id)) cut.Add(id);
  }
  return cut;
}

}  // namespace weft
