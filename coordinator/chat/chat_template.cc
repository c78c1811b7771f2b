#include "coordinator/chat/chat_template.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"
#include "coordinator/chat/chat_messages.h"

namespace weft {

const std::string_view kChatMl =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

absl::StatusOr<ChatTemplate> ChatTemplate::Create(const ChatTemplateOptions& options) {
  ChatTemplate made;
  made.bos_token_ = options.bos_token;
  made.eos_token_ = options.eos_token;
  const std::string source = options.source.empty() ? std::string(kChatMl) : options.source;
  ASSIGN_OR_RETURN(made.plain_,
                   made.MakeVariant("tokenizer.chat_template", source, options.limits));
  if (!options.tool_use_source.empty()) {
    ASSIGN_OR_RETURN(made.tool_use_, made.MakeVariant("tokenizer.chat_template.tool_use",
                                                      options.tool_use_source, options.limits));
  }
  return made;
}

absl::StatusOr<ChatTemplate::Variant> ChatTemplate::MakeVariant(std::string_view key,
                                                                const std::string& source,
                                                                const jinja::Limits& limits) const {
  absl::StatusOr<jinja::Template> parsed = jinja::Template::Parse(source, limits);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(AbslView(key), ": ", parsed.status().message()));
  }
  ChatRequest request;
  request.now.tm_year = 124;  // any day will do
  request.now.tm_mday = 1;
  const ChatCapabilities capabilities =
      FindCapabilities([&](const Json& messages, const Json& tools) {
        return RenderVariant(*parsed, messages, tools, request);
      });
  return Variant{source, *std::move(parsed), capabilities};
}

absl::StatusOr<std::string> ChatTemplate::RenderVariant(const jinja::Template& parsed,
                                                        const Json& messages, const Json& tools,
                                                        const ChatRequest& request) const {
  Json variables = request.variables.is_object() ? request.variables : Json::object();
  variables["messages"] = messages;
  variables["tools"] = tools;
  // Transformers passes it too, and templates rely on its being defined.
  if (!variables.contains("documents")) variables["documents"] = nullptr;
  variables["add_generation_prompt"] = request.add_generation_prompt;
  variables["bos_token"] = bos_token_;
  variables["eos_token"] = eos_token_;
  return parsed.Render(variables, request.now);
}

namespace {

// What gpt-oss calls `thinking` others call `reasoning_content`; clients send the latter. Not where
// a call comes with content: that template takes only one of the two.
void NameReasoning(Json* messages) {
  for (auto& message : *messages) {
    const auto reasoning = message.find("reasoning_content");
    if (reasoning == message.end() || !reasoning->is_string() || message.contains("thinking")) {
      continue;
    }
    const auto& content = message["content"];
    const bool has_content = content.is_string() && !content.get_ref<const std::string&>().empty();
    if (message.contains("tool_calls") && has_content) continue;
    message["thinking"] = std::string(*reasoning);
  }
}

}  // namespace

absl::StatusOr<std::string> ChatTemplate::Render(const ChatRequest& request) const {
  const bool with_tools = request.tools.is_array() && !request.tools.empty();
  const Variant& variant = Choose(with_tools);
  ASSIGN_OR_RETURN(ChatConversation conversation,
                   AdaptMessages(request.messages, request.tools, variant.capabilities));
  if (variant.source.find("message.thinking") != std::string::npos) {
    NameReasoning(&conversation.messages);
  }
  absl::StatusOr<std::string> text =
      RenderVariant(variant.parsed, conversation.messages, conversation.tools, request);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(absl::StrCat("chat template: ", text.status().message()));
}

}  // namespace weft
