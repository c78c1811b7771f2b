// From the messages of a chat to the text that the model continues: the template of the model, with
// stated ways around what it cannot say (chat_messages.h).
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/chat/chat_capabilities.h"
#include "coordinator/chat/jinja/template.h"
#include "coordinator/chat/json_line.h"

namespace weft {

struct ChatTemplateOptions {
  // tokenizer.chat_template; empty: the model has none, and ChatML is taken.
  std::string source;
  // tokenizer.chat_template.tool_use, taken where there are tools; empty: none.
  std::string tool_use_source;
  // The texts of these tokens, for the variables bos_token and eos_token; may be empty.
  std::string bos_token;
  std::string eos_token;
  jinja::Limits limits;
};

// NOLINTNEXTLINE(bugprone-exception-escape): the library says that moving JSON does not throw.
struct ChatRequest {
  Json messages;  // as chat_messages.h says
  Json tools;     // null or an array of {"type": "function", "function": {...}}
  bool add_generation_prompt = true;
  // More variables, enable_thinking for one: an object, or null. Those that are named here
  // otherwise cannot be set by it.
  Json variables;
  std::tm now = {};  // the civil time that the template sees
};

class ChatTemplate {
 public:
  // Errors: INVALID_ARGUMENT, naming the key of the file and the line, for what is no template.
  static absl::StatusOr<ChatTemplate> Create(const ChatTemplateOptions& options);

  // The text for `request`. It may start with bos_token; then the tokenizer must not add one (see
  // BeginsWithBos). May be called from several threads at once.
  // Errors: INVALID_ARGUMENT for messages that are none, and for what the template refuses.
  absl::StatusOr<std::string> Render(const ChatRequest& request) const;

  bool BeginsWithBos(std::string_view text) const {
    return !bos_token_.empty() && text.starts_with(bos_token_);
  }

  // Of the template that is taken with (or without) tools.
  const ChatCapabilities& capabilities(bool with_tools) const {
    return Choose(with_tools).capabilities;
  }
  // Its source: that of ChatML where the model has none.
  const std::string& source(bool with_tools) const { return Choose(with_tools).source; }

 private:
  struct Variant {
    std::string source;
    jinja::Template parsed;
    ChatCapabilities capabilities;
  };

  ChatTemplate() = default;
  absl::StatusOr<Variant> MakeVariant(std::string_view key, const std::string& source,
                                      const jinja::Limits& limits) const;
  absl::StatusOr<std::string> RenderVariant(const jinja::Template& parsed, const Json& messages,
                                            const Json& tools, const ChatRequest& request) const;
  const Variant& Choose(bool with_tools) const {
    return with_tools && tool_use_.has_value() ? *tool_use_ : *plain_;
  }

  std::string bos_token_;
  std::string eos_token_;
  std::optional<Variant> plain_;  // always there after Create
  std::optional<Variant> tool_use_;
};

// What a model without a template gets.
extern const std::string_view kChatMl;

}  // namespace weft
