// What was said so far.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "coordinator/json/checked_json.h"

namespace weft {

class Conversation {
 public:
  // `system` (may be empty) stays at its head. Texts are valid UTF-8.
  explicit Conversation(const std::string& system);

  void AddUser(const std::string& text);
  void AddAnswer(const std::string& content, const std::string& reasoning);
  // Takes the last message back.
  void DropLast();
  void Reset();

  // As in the API.
  const Json& messages() const { return messages_; }
  // A JSON object with `model` and the messages, written whole or not at all. Errors: of
  // OutputFile, naming the path.
  absl::Status Save(const std::string& path, const std::string& model) const;

 private:
  const std::string system_;
  Json messages_;
};

}  // namespace weft
