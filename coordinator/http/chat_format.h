// How a model talks: prompts from messages, and what it says taken apart.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/chat/reply_event.h"
#include "coordinator/http/chat_schema.h"
#include "coordinator/sampling/token_constraint.h"

namespace weft {

// Takes one reply apart while it comes.
class ReplyReader {
 public:
  virtual ~ReplyReader() = default;
  virtual std::vector<ReplyEvent> Append(std::string_view text) = 0;
  // The reply is over.
  virtual std::vector<ReplyEvent> Finish() = 0;
};

// Holds one continuation to a form. Any thread.
using ConstraintMaker = std::function<absl::StatusOr<std::unique_ptr<TokenConstraint>>()>;

struct ChatPrompt {
  std::vector<int32_t> tokens;
  std::vector<std::string> stop;                              // beside those of the request
  bool special_tokens = false;                                // readers want to see control tokens
  std::function<std::unique_ptr<ReplyReader>()> make_reader;  // of one reply
  ConstraintMaker make_constraint;  // of one reply, for what the body asks; empty: anything
};

// Any thread.
class ChatFormat {
 public:
  virtual ~ChatFormat() = default;
  // Errors: INVALID_ARGUMENT for messages that the model's template refuses, and for a form or tool
  // that is wrong; UNIMPLEMENTED where a tool choice cannot be enforced.
  virtual absl::StatusOr<ChatPrompt> Prompt(const ChatBody& request) const = 0;
};

// What holds continuations of a plain prompt to a form, read once for all of them. Any thread.
class OutputConstraints {
 public:
  virtual ~OutputConstraints() = default;
  // Errors: INVALID_ARGUMENT for what is wrong with it, without the field's name.
  virtual absl::StatusOr<ConstraintMaker> OfGrammar(std::string_view gbnf) const = 0;
  virtual absl::StatusOr<ConstraintMaker> OfSchema(const Json& schema) const = 0;
  // Any JSON object.
  virtual absl::StatusOr<ConstraintMaker> OfJsonObject() const = 0;
};

}  // namespace weft
