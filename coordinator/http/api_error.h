// Errors as OpenAI's API words them.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "coordinator/json/checked_json.h"

namespace weft {

// What a reply with an error says.
struct ApiError {
  int http_status = 500;
  std::string message;
  std::string type;
  std::string param;  // the field at fault; empty: none
  std::string code;   // a word for programs; empty: none
};

// INVALID_ARGUMENT, OUT_OF_RANGE and UNIMPLEMENTED may begin with the field at fault and a colon.
ApiError ApiErrorOf(const absl::Status& status);

// The status with the field at fault before its text.
absl::Status OfField(std::string_view field, const absl::Status& status);

// {"error": {"message", "type", "param", "code"}}
Json ApiErrorJson(const ApiError& error);

// One line of JSON. Text that is not UTF-8 is replaced, so that this cannot fail.
std::string JsonText(const Json& json);

}  // namespace weft
