// Chats by the template of the model.
#pragma once

#include <memory>

#include "coordinator/chat/chat_template.h"
#include "coordinator/chat/reply_parser.h"
#include "coordinator/chat/text_guard.h"
#include "coordinator/grammar/token_trie.h"
#include "coordinator/http/chat_format.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

class TemplateFormat final : public ChatFormat {
 public:
  // `tokenizer` outlives it; `trie` is of its tokens.
  TemplateFormat(ChatTemplate chat_template, const Tokenizer& tokenizer,
                 std::shared_ptr<const TokenTrie> trie)
      : template_(std::move(chat_template)), tokenizer_(tokenizer), trie_(std::move(trie)) {}

  absl::StatusOr<ChatPrompt> Prompt(const ChatBody& body) const override;

 private:
  absl::StatusOr<GuardedText> RenderGuarded(ChatRequest request) const;
  // What the body asks of a reply; empty: nothing.
  absl::StatusOr<ConstraintMaker> Constraint(const ChatBody& body, const ReplyOptions& reply) const;

  const ChatTemplate template_;
  const Tokenizer& tokenizer_;
  const std::shared_ptr<const TokenTrie> trie_;
};

}  // namespace weft
