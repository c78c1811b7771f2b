#include "coordinator/cli/chat_template_file.h"

#include <memory>

#include "common/base/mapped_file.h"
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
    ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> text, MappedFile::Open(path));
    options.source.assign(reinterpret_cast<const char*>(text->bytes().data()),
                          text->bytes().size());
  }
  return ChatTemplate::Create(options);
}

}  // namespace weft
