// What a reply must look like, so that what takes it apart finds what was asked for.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/chat/json_line.h"
#include "coordinator/chat/reply_parser.h"
#include "coordinator/grammar/grammar.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace weft {

// What is asked of a reply. Thoughts may come before it where the format has them.
struct ReplyBounds {
  // The rule for the text of the answer. Empty: no answer, only calls.
  std::function<absl::StatusOr<GrammarElement>(GrammarBuilder&)> answer;
  // Those that may be called, as the API has them; null: no calls.
  const Json* tools = nullptr;
  std::string function;  // the only one of them; empty: any
  bool several_calls = true;
};

// Marks that are control tokens of the tokenizer are these, others are text. Arguments follow the
// tool's schema. A schema that cannot be enforced is an error if the tool is
// strict; else its arguments are any object.
// Errors: UNIMPLEMENTED if the format has no known way to call tools, or `bounds` asks for nothing;
// INVALID_ARGUMENT for tools, with the field's name, a grammar that is too large, and whatever
// `answer` returns.
absl::StatusOr<Grammar> MakeReplyGrammar(const ReplyOptions& reply, const ReplyBounds& bounds,
                                         const Tokenizer& tokenizer);

}  // namespace weft
