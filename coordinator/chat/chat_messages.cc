#include "coordinator/chat/chat_messages.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

absl::Status Wrong(std::string_view path, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(AbslView(path), ": ", AbslView(what)));
}

// A member, or null.
const Json* Member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

bool HasRole(const Json& message, std::string_view role) {
  const auto* text = message["role"].get_ptr<const std::string*>();
  return text != nullptr && *text == role;
}

Json Message(std::string_view role, std::string_view content) {
  return {{"role", role}, {"content", content}};
}

// Texts with an empty line between them, unless one is empty.
std::string Join(std::string_view a, std::string_view b) {
  return absl::StrCat(AbslView(a), a.empty() || b.empty() ? "" : "\n\n", AbslView(b));
}

std::string ToolsText(const Json& tools) {
  std::string text =
      "You may call functions. Each is described by one line of JSON between <tools> and "
      "</tools>:\n<tools>\n";
  for (const auto& tool : tools) absl::StrAppend(&text, JsonLine(tool), "\n");
  absl::StrAppend(&text,
                  "</tools>\nTo call one, write its name and arguments as JSON between "
                  "<tool_call> and </tool_call>, once for each call:\n<tool_call>\n"
                  "{\"name\": \"function name\", \"arguments\": {\"argument\": \"value\"}}\n"
                  "</tool_call>");
  return text;
}

class MessageAdapter {
 public:
  explicit MessageAdapter(const ChatCapabilities& capabilities) : can_(capabilities) {}

  absl::StatusOr<ChatConversation> Run(const Json& messages, const Json& tools) {
    if (!messages.is_array()) return Wrong("messages", "want an array");
    if (!tools.is_array() && !tools.is_null()) return Wrong("tools", "want an array");
    out_.messages = Json::array();
    for (size_t i = 0; i < messages.size(); ++i) {
      RETURN_IF_ERROR(Add(messages[i], absl::StrCat("messages[", i, "]")));
    }
    if (!tools.empty()) {
      if (can_.tools) {
        out_.tools = tools;
      } else {
        AddSystemText(ToolsText(tools));
      }
    }
    if (!can_.system_role) MergeSystem();
    if (!can_.text_content && can_.content_parts) WrapContents();
    return std::move(out_);
  }

 private:
  absl::Status Add(const Json& source, const std::string& path) {
    if (!source.is_object()) return Wrong(path, "want an object");
    const Json* role = Member(source, "role");
    if (role == nullptr || !role->is_string()) return Wrong(path, "want a role");
    Json message = source;
    if (HasRole(message, "developer")) message["role"] = "system";
    const bool has_calls = Member(message, "tool_calls") != nullptr;
    RETURN_IF_ERROR(AdaptContent(&message, has_calls, path));
    if (has_calls) {
      RETURN_IF_ERROR(AdaptCalls(&message, path));
    } else {
      message.erase("tool_calls");
    }
    if (HasRole(message, "tool") && !can_.tool_role) {
      AddToolAnswer(message);
    } else {
      out_.messages.push_back(std::move(message));
    }
    return absl::OkStatus();
  }

  absl::Status AdaptContent(Json* message, bool has_calls, const std::string& path) const {
    const Json* content = Member(*message, "content");
    if (content == nullptr) {
      (*message)["content"] = has_calls && can_.null_content ? Json(nullptr) : Json("");
      return absl::OkStatus();
    }
    if (content->is_string()) return absl::OkStatus();
    if (!content->is_array()) return Wrong(path + ".content", "want a text or a list of parts");
    std::string text;
    for (size_t i = 0; i < content->size(); ++i) {
      const Json& part = (*content)[i];
      const Json* type = part.is_object() ? Member(part, "type") : nullptr;
      const Json* words = part.is_object() ? Member(part, "text") : nullptr;
      if (type == nullptr || *type != "text" || words == nullptr || !words->is_string()) {
        return Wrong(absl::StrCat(path, ".content[", i, "]"),
                     "want a part of type 'text'; this model reads nothing else");
      }
      absl::StrAppend(&text, i == 0 ? "" : "\n", *words->get_ptr<const std::string*>());
    }
    if (!can_.content_parts) (*message)["content"] = std::move(text);
    return absl::OkStatus();
  }

  absl::Status AdaptCalls(Json* message, const std::string& path) const {
    Json& calls = (*message)["tool_calls"];
    if (!calls.is_array()) return Wrong(path + ".tool_calls", "want an array");
    for (size_t i = 0; i < calls.size(); ++i) {
      const std::string call_path = absl::StrCat(path, ".tool_calls[", i, "]");
      Json* function = nullptr;
      if (calls[i].is_object() && calls[i].contains("function")) function = &calls[i]["function"];
      if (function == nullptr || !function->is_object() || Member(*function, "name") == nullptr ||
          !(*function)["name"].is_string()) {
        return Wrong(call_path, "want a function with a name");
      }
      const Json* arguments = Member(*function, "arguments");
      (*function)["arguments"] = AdaptArguments(arguments == nullptr ? Json::object() : *arguments);
    }
    if (!can_.tool_calls) MoveCallsToContent(message);
    return absl::OkStatus();
  }

  // A text that is no object of JSON stays as the client sent it.
  Json AdaptArguments(const Json& arguments) const {
    const auto* text = arguments.get_ptr<const std::string*>();
    const bool want_object = can_.object_arguments || !can_.tool_calls;
    if (text == nullptr) return want_object ? arguments : Json(JsonLine(arguments));
    if (!want_object) return arguments;
    const auto parsed = ParseJson(*text, {});
    return parsed.ok() && parsed->is_object() ? *parsed : arguments;
  }

  static void MoveCallsToContent(Json* message) {
    std::string text;
    if ((*message)["content"].is_string()) text = (*message)["content"].get<std::string>();
    for (const auto& call : (*message)["tool_calls"]) {
      const Json line = {{"name", call["function"]["name"]},
                         {"arguments", call["function"]["arguments"]}};
      absl::StrAppend(&text, text.empty() ? "" : "\n", "<tool_call>\n", JsonLine(line),
                      "\n</tool_call>");
    }
    (*message)["content"] = std::move(text);
    message->erase("tool_calls");
  }

  // Answers that follow each other share one message, so that roles take turns.
  void AddToolAnswer(const Json& message) {
    const std::string text =
        absl::StrCat("<tool_response>\n", TextOf(message["content"]), "\n</tool_response>");
    if (after_answer_ == out_.messages.size() && after_answer_ > 0) {
      std::string content = TextOf(out_.messages.back()["content"]);
      out_.messages.back()["content"] = absl::StrCat(content, "\n", text);
      return;
    }
    out_.messages.push_back(Message("user", text));
    after_answer_ = out_.messages.size();
  }

  static std::string TextOf(const Json& content) {
    if (const auto* text = content.get_ptr<const std::string*>()) return *text;
    std::string joined;
    if (!content.is_array()) return joined;
    for (const auto& part : content) {
      absl::StrAppend(&joined, joined.empty() ? "" : "\n", part["text"].get<std::string>());
    }
    return joined;
  }

  void AddSystemText(const std::string& text) {
    Json& messages = out_.messages;
    if (!messages.empty() && HasRole(messages[0], "system")) {
      messages[0]["content"] = Join(TextOf(messages[0]["content"]), text);
      return;
    }
    messages.insert(messages.begin(), Message("system", text));
  }

  // Takes out all system messages and puts their text before that of the first user.
  void MergeSystem() {
    std::string system;
    Json kept = Json::array();
    size_t user = SIZE_MAX;
    for (auto& message : out_.messages) {
      if (HasRole(message, "system")) {
        system = Join(system, TextOf(message["content"]));
        continue;
      }
      if (user == SIZE_MAX && HasRole(message, "user")) user = kept.size();
      kept.push_back(std::move(message));
    }
    out_.messages = std::move(kept);
    if (system.empty()) return;
    if (user == SIZE_MAX) {
      out_.messages.insert(out_.messages.begin(), Message("user", system));
      return;
    }
    Json& content = out_.messages[user]["content"];
    content = Join(system, TextOf(content));
  }

  void WrapContents() {
    for (auto& message : out_.messages) {
      if (!message["content"].is_string()) continue;
      const std::string text = message["content"].get<std::string>();
      message["content"] = Json::array({{{"type", "text"}, {"text", text}}});
    }
  }

  const ChatCapabilities& can_;
  ChatConversation out_;
  size_t after_answer_ = 0;  // how many messages there were after the last answer of a tool
};

}  // namespace

absl::StatusOr<ChatConversation> AdaptMessages(const Json& messages, const Json& tools,
                                               const ChatCapabilities& capabilities) {
  return MessageAdapter(capabilities).Run(messages, tools);
}

}  // namespace weft
