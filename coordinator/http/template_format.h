// Chats by the template of the model.
#pragma once

#include <memory>

#include "coordinator/chat/chat_template.h"
#include "coordinator/http/chat_format.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

class TemplateFormat final : public ChatFormat {
 public:
  // `tokenizer` outlives it.
  TemplateFormat(ChatTemplate chat_template, const Tokenizer& tokenizer)
      : template_(std::move(chat_template)), tokenizer_(tokenizer) {}

  absl::StatusOr<ChatPrompt> Prompt(const ChatBody& body) const override;
  absl::StatusOr<std::unique_ptr<TokenConstraint>> Constraint(const ChatBody& body) const override;

 private:
  const ChatTemplate template_;
  const Tokenizer& tokenizer_;
};

}  // namespace weft
