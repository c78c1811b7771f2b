// The chat template that a command uses: a file's, or the model's.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/gguf/gguf_file.h"
#include "coordinator/chat/chat_template.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

// `path` is --chat-template; empty: the template of `model`, and ChatML where it has none. Errors:
// of the file, and those of ChatTemplate::Create.
absl::StatusOr<ChatTemplate> ReadChatTemplate(const std::string& path, const GgufFile& model,
                                              const Tokenizer& tokenizer);

}  // namespace weft
