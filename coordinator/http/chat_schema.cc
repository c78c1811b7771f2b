#include "coordinator/http/chat_schema.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/escaped_text.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};
constexpr size_t kLongestText = size_t{1} << 30;  // the body's limit is less
constexpr size_t kShownBytes = 64;

absl::Status CannotDo(const JsonValue& value, std::string_view what) {
  return absl::UnimplementedError(
      absl::StrCat(value.path(), ": this server cannot do ", std::string(what)));
}

// The text of [{"type": "text", "text": ...}, ...].
absl::StatusOr<std::string> JoinedParts(const JsonValue& content) {
  ASSIGN_OR_RETURN(const std::vector<JsonValue> parts, content.Elements(kMostContentParts));
  std::string all;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is_object()) return parts[i].Error("want an object");
    ASSIGN_OR_RETURN(const JsonValue type, parts[i].At("type"));
    ASSIGN_OR_RETURN(const std::string kind, type.Text(kLongestName));
    if (kind != "text" && kind != "refusal") return CannotDo(type, EscapedText(kind, kShownBytes));
    ASSIGN_OR_RETURN(const JsonValue text, parts[i].At(kind));
    ASSIGN_OR_RETURN(const std::string part, text.String(kLongestText));
    absl::StrAppend(&all, i > 0 ? "\n" : "", part);
  }
  return all;
}

absl::Status CheckToolCall(const JsonValue& call) {
  RETURN_IF_ERROR(call.CheckKeys({"id", "type", "function", "index"}));
  if (const std::optional<JsonValue> type = call.Find("type")) {
    ASSIGN_OR_RETURN(const std::string kind, type->Text(kLongestName));
    if (kind != "function") return type->Error("want function");
  }
  if (const std::optional<JsonValue> id = call.Find("id")) {
    RETURN_IF_ERROR(id->String(kLongestName).status());
  }
  ASSIGN_OR_RETURN(const JsonValue function, call.At("function"));
  RETURN_IF_ERROR(function.CheckKeys({"name", "arguments"}));
  ASSIGN_OR_RETURN(const JsonValue name, function.At("name"));
  RETURN_IF_ERROR(name.Text(kLongestName).status());
  ASSIGN_OR_RETURN(const JsonValue arguments, function.At("arguments"));
  return arguments.String(kLongestText).status();
}

absl::Status CheckToolCalls(const JsonValue& message) {
  const std::optional<JsonValue> calls = message.Find("tool_calls");
  if (!calls) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<JsonValue> elements, calls->Elements(kMostToolCalls));
  for (const JsonValue& call : elements) RETURN_IF_ERROR(CheckToolCall(call));
  return absl::OkStatus();
}

absl::StatusOr<Json> ReadMessage(const JsonValue& message) {
  RETURN_IF_ERROR(message.CheckKeys({"role", "content", "name", "tool_calls", "tool_call_id",
                                     "reasoning_content", "reasoning", "thinking", "refusal",
                                     "audio", "function_call", "annotations"}));
  ASSIGN_OR_RETURN(const JsonValue role, message.At("role"));
  ASSIGN_OR_RETURN(const std::string name, role.Text(kLongestName));
  if (std::find(kRoles.begin(), kRoles.end(), name) == kRoles.end()) {
    return role.Error("want system, developer, user, assistant or tool");
  }
  for (const std::string_view field : {"audio", "function_call"}) {
    if (const std::optional<JsonValue> value = message.Find(field)) {
      return CannotDo(*value, field);
    }
  }
  for (const std::string_view field :
       {"name", "tool_call_id", "reasoning_content", "reasoning", "thinking", "refusal"}) {
    if (const std::optional<JsonValue> value = message.Find(field)) {
      RETURN_IF_ERROR(value->String(kLongestText).status());
    }
  }
  RETURN_IF_ERROR(CheckToolCalls(message));
  Json checked = message.json();
  const std::optional<JsonValue> content = message.Find("content");
  if (!content) {
    // Replies that only call tools or refuse say nothing.
    if (name != "assistant") return message.At("content").status();
  } else if (content->is_array()) {
    ASSIGN_OR_RETURN(checked["content"], JoinedParts(*content));
  } else {
    RETURN_IF_ERROR(content->String(kLongestText).status());
  }
  return checked;
}

absl::Status ReadMessages(const JsonValue& body, ChatBody& request) {
  ASSIGN_OR_RETURN(const JsonValue messages, body.At("messages"));
  ASSIGN_OR_RETURN(const std::vector<JsonValue> elements, messages.Elements(kMostMessages));
  if (elements.empty()) return messages.Error("there are none");
  for (const JsonValue& element : elements) {
    if (!element.is_object()) return element.Error("want an object");
    ASSIGN_OR_RETURN(Json message, ReadMessage(element));
    request.messages.push_back(std::move(message));
  }
  return absl::OkStatus();
}

// The name of the function.
absl::StatusOr<std::string> CheckTool(const JsonValue& tool) {
  RETURN_IF_ERROR(tool.CheckKeys({"type", "function"}));
  ASSIGN_OR_RETURN(const JsonValue type, tool.At("type"));
  ASSIGN_OR_RETURN(const std::string kind, type.Text(kLongestName));
  if (kind != "function") return CannotDo(type, EscapedText(kind, kShownBytes));
  ASSIGN_OR_RETURN(const JsonValue function, tool.At("function"));
  RETURN_IF_ERROR(function.CheckKeys({"name", "description", "parameters", "strict"}));
  if (const std::optional<JsonValue> description = function.Find("description")) {
    RETURN_IF_ERROR(description->String(kLongestText).status());
  }
  const std::optional<JsonValue> parameters = function.Find("parameters");
  if (parameters && !parameters->is_object()) return parameters->Error("want an object");
  RETURN_IF_ERROR(ReadBool(function, "strict", false).status());
  ASSIGN_OR_RETURN(const JsonValue name, function.At("name"));
  return name.Text(kLongestName);
}

absl::Status ReadToolChoice(const JsonValue& choice, const std::vector<std::string>& names,
                            ToolChoice& result) {
  if (choice.is_string()) {
    ASSIGN_OR_RETURN(const std::string word, choice.String(kLongestName));
    if (word == "none") {
      result.kind = ToolChoice::Kind::kNone;
    } else if (word == "required") {
      result.kind = ToolChoice::Kind::kRequired;
    } else if (word != "auto") {
      return choice.Error("want none, auto, required or an object that names a function");
    }
  } else {
    RETURN_IF_ERROR(choice.CheckKeys({"type", "function"}));
    ASSIGN_OR_RETURN(const JsonValue function, choice.At("function"));
    RETURN_IF_ERROR(function.CheckKeys({"name"}));
    ASSIGN_OR_RETURN(const JsonValue name, function.At("name"));
    ASSIGN_OR_RETURN(result.name, name.Text(kLongestName));
    result.kind = ToolChoice::Kind::kNamed;
    if (std::find(names.begin(), names.end(), result.name) == names.end()) {
      return name.Error("is not among the tools");
    }
  }
  if (names.empty() && result.kind == ToolChoice::Kind::kRequired) {
    return choice.Error("there are no tools");
  }
  return absl::OkStatus();
}

absl::Status ReadTools(const JsonValue& body, ChatBody& request) {
  std::vector<std::string> names;
  if (const std::optional<JsonValue> tools = body.Find("tools")) {
    ASSIGN_OR_RETURN(const std::vector<JsonValue> elements, tools->Elements(kMostTools));
    for (const JsonValue& element : elements) {
      ASSIGN_OR_RETURN(names.emplace_back(), CheckTool(element));
    }
    request.tools = tools->json();
  }
  if (const std::optional<JsonValue> choice = body.Find("tool_choice")) {
    RETURN_IF_ERROR(ReadToolChoice(*choice, names, request.tool_choice));
  }
  ASSIGN_OR_RETURN(request.parallel_tool_calls, ReadBool(body, "parallel_tool_calls", true));
  return absl::OkStatus();
}

absl::Status ReadLogProbabilities(const JsonValue& body, GenerationFields& generation) {
  ASSIGN_OR_RETURN(const bool wanted, ReadBool(body, "logprobs", false));
  const std::optional<JsonValue> top = body.Find("top_logprobs");
  if (top && !wanted) return top->Error("only with logprobs");
  ASSIGN_OR_RETURN(const int64_t count,
                   ReadInteger(body, "top_logprobs", 0, 0, kMostTopLogProbabilities));
  if (wanted) generation.log_probabilities = static_cast<int32_t>(count);
  return absl::OkStatus();
}

absl::Status ReadTemplateArguments(const JsonValue& body, ChatBody& request) {
  if (const std::optional<JsonValue> arguments = body.Find("chat_template_kwargs")) {
    if (!arguments->is_object()) return arguments->Error("want an object");
    request.template_arguments = arguments->json();
  }
  if (const std::optional<JsonValue> effort = body.Find("reasoning_effort")) {
    ASSIGN_OR_RETURN(request.template_arguments["reasoning_effort"], effort->Text(kLongestName));
  }
  return absl::OkStatus();
}

absl::Status RefuseOtherKinds(const JsonValue& body) {
  for (const std::string_view field :
       {"audio", "functions", "function_call", "prediction", "web_search_options"}) {
    if (const std::optional<JsonValue> value = body.Find(field)) return CannotDo(*value, field);
  }
  if (const std::optional<JsonValue> modalities = body.Find("modalities")) {
    if (modalities->json() != Json::array({"text"})) {
      return CannotDo(*modalities, "anything but text");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ChatBody> ReadChatBody(std::string_view body, const SamplerOptions& defaults) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(body, {}));
  const JsonValue root(json);
  ChatBody request;
  ASSIGN_OR_RETURN(
      request.generation,
      ReadGenerationFields(
          root, defaults,
          {"messages", "tools", "tool_choice", "parallel_tool_calls", "logprobs", "top_logprobs",
           "max_completion_tokens", "chat_template_kwargs", "reasoning_effort", "audio",
           "functions", "function_call", "prediction", "web_search_options", "modalities"}));
  RETURN_IF_ERROR(RefuseOtherKinds(root));
  RETURN_IF_ERROR(ReadMessages(root, request));
  RETURN_IF_ERROR(ReadTools(root, request));
  RETURN_IF_ERROR(ReadLogProbabilities(root, request.generation));
  RETURN_IF_ERROR(ReadTemplateArguments(root, request));
  // The newer name of max_tokens wins.
  ASSIGN_OR_RETURN(
      request.generation.max_tokens,
      ReadInteger(root, "max_completion_tokens", request.generation.max_tokens, 1, INT32_MAX));
  return request;
}

}  // namespace weft
