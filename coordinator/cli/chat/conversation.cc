#include "coordinator/cli/chat/conversation.h"

#include <utility>

#include "common/base/status_macros.h"
#include "coordinator/cli/output_file.h"

namespace weft {

Conversation::Conversation(const std::string& system) : system_(system) { Reset(); }

void Conversation::AddUser(const std::string& text) {
  messages_.push_back({{"role", "user"}, {"content", text}});
}

void Conversation::AddAnswer(const std::string& content, const std::string& reasoning) {
  Json message = {{"role", "assistant"}, {"content", content}};
  if (!reasoning.empty()) message["reasoning_content"] = reasoning;
  messages_.push_back(std::move(message));
}

void Conversation::DropLast() { messages_.erase(messages_.size() - 1); }

void Conversation::Reset() {
  messages_ = Json::array();
  if (!system_.empty()) messages_.push_back({{"role", "system"}, {"content", system_}});
}

absl::Status Conversation::Save(const std::string& path, const std::string& model) const {
  const Json whole = {{"model", model}, {"messages", messages_}};
  const std::string text =
      whole.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file, OutputFile::Create(path, {}));
  RETURN_IF_ERROR(file->Write(text.data(), text.size()));
  return file->Finish();
}

}  // namespace weft
