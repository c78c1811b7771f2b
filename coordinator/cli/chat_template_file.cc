#include "coordinator/cli/chat_template_file.h"

#include "common/base/small_file.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

std::string TokenText(const Tokenizer& tokenizer, int32_t token) {
  return token < 0 ? "" : tokenizer.Piece(token, true);
}

}  // namespace

absl::StatusOr<ChatTemplate> ReadChatTemplate(const std::string& path, const GgufFile& model,
                                              const Tokenizer& tokenizer) {
  ChatTemplateOptions options;
  options.bos_token = TokenText(tokenizer, tokenizer.bos());
  options.eos_token = TokenText(tokenizer, tokenizer.eos());
  if (path.empty()) {
    ASSIGN_OR_RETURN(options.source, model.metadata().StringOr("tokenizer.chat_template", ""));
    ASSIGN_OR_RETURN(options.tool_use_source,
                     model.metadata().StringOr("tokenizer.chat_template.tool_use", ""));
  } else {
    ASSIGN_OR_RETURN(options.source,
                     ReadSmallFile(path, static_cast<size_t>(options.limits.template_bytes)));
  }
  return ChatTemplate::Create(options);
}

}  // namespace weft
