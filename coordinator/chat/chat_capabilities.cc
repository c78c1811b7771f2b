#include "coordinator/chat/chat_capabilities.h"

#include <initializer_list>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"

namespace weft {
namespace {

constexpr char kSystem[] = "zqSystem";
constexpr char kUser[] = "zqUser";
constexpr char kFunction[] = "zq_function";
constexpr char kOtherFunction[] = "zq_second";
constexpr char kArgument[] = "zq_argument";
constexpr char kArgumentValue[] = "zqValue";
constexpr char kAnswer[] = "zqAnswer";

Json Message(std::string_view role, Json content) {
  return {{"role", role}, {"content", std::move(content)}};
}

Json TextParts(std::string_view text) { return Json::array({{{"type", "text"}, {"text", text}}}); }

Json TrialTools() {
  const Json properties = {{kArgument, {{"type", "string"}, {"description", "a word"}}}};
  return Json::array({{{"type", "function"},
                       {"function",
                        {{"name", kFunction},
                         {"description", "does something"},
                         {"parameters",
                          {{"type", "object"},
                           {"properties", properties},
                           {"required", Json::array({kArgument})}}}}}}});
}

Json CallOf(std::string_view id, std::string_view name, Json arguments) {
  return {{"id", id},
          {"type", "function"},
          {"function", {{"name", name}, {"arguments", std::move(arguments)}}}};
}

struct CallTrial {
  Json content = "";
  bool as_object = true;
  bool two_calls = false;
};

// A question, calls of a tool, and answers. Ids have nine characters because some templates insist.
Json CallConversation(const CallTrial& trial) {
  const Json object = {{kArgument, kArgumentValue}};
  const Json arguments = trial.as_object ? object : Json(JsonLine(object));
  Json assistant = Message("assistant", trial.content);
  assistant["tool_calls"] = Json::array({CallOf("call00001", kFunction, arguments)});
  Json messages = Json::array({Message("user", kUser)});
  if (trial.two_calls) {
    assistant["tool_calls"].push_back(CallOf("call00002", kOtherFunction, arguments));
  }
  messages.push_back(assistant);
  for (const char* id : {"call00001", "call00002"}) {
    if (messages.size() == 3 && !trial.two_calls) break;
    Json answer = Message("tool", kAnswer);
    answer["tool_call_id"] = id;
    answer["name"] = kFunction;
    messages.push_back(answer);
  }
  return messages;
}

class Trials {
 public:
  explicit Trials(const TrialRender& render) : render_(render) {}

  // Empty where the template refuses.
  std::string Text(const Json& messages, const Json& tools = nullptr) const {
    const auto text = render_(messages, tools);
    return text.ok() ? *text : std::string();
  }

  static bool Has(const std::string& text, std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) {
      if (text.find(word) == std::string::npos) return false;
    }
    return true;
  }

  // The text of the calls alone: the tools, which hold the same names, are left out.
  std::string Calls(const CallTrial& trial) const { return Text(CallConversation(trial)); }

 private:
  const TrialRender& render_;
};

void FindCallCapabilities(const Trials& trials, ChatCapabilities* found) {
  const std::string object = trials.Calls({});
  const std::string text = trials.Calls({"", false, false});
  // 'zq_argument' in single quotes is an object that the template printed without making it JSON.
  found->object_arguments = Trials::Has(object, {kFunction, kArgument, kArgumentValue}) &&
                            !Trials::Has(object, {"'zq_argument'"});
  const bool text_arguments = Trials::Has(text, {kFunction, "\"zq_argument\": \"zqValue\""});
  found->tool_calls = found->object_arguments || text_arguments;
  if (!found->tool_calls) return;
  found->tool_role = Trials::Has(found->object_arguments ? object : text, {kAnswer});
  const std::string null_text = trials.Calls({nullptr, found->object_arguments, false});
  found->null_content =
      Trials::Has(null_text, {kFunction}) && Trials::Has(null_text, {kAnswer}) == found->tool_role;
  found->parallel_calls =
      Trials::Has(trials.Calls({"", found->object_arguments, true}), {kFunction, kOtherFunction});
}

}  // namespace

ChatCapabilities FindCapabilities(const TrialRender& render) {
  const Trials trials(render);
  ChatCapabilities found;
  const Json user = Json::array({Message("user", kUser)});
  const Json parts = Json::array({Message("user", TextParts(kUser))});
  const std::string parts_text = trials.Text(parts);
  found.text_content = Trials::Has(trials.Text(user), {kUser});
  // A list that was printed as such does not count.
  found.content_parts =
      Trials::Has(parts_text, {kUser}) && !Trials::Has(parts_text, {"text", "type"});
  const bool only_parts = !found.text_content && found.content_parts;
  const auto content = [&](const char* text) { return only_parts ? TextParts(text) : Json(text); };
  const Json with_system =
      Json::array({Message("system", content(kSystem)), Message("user", content(kUser))});
  found.system_role = Trials::Has(trials.Text(with_system), {kSystem, kUser});
  const Json& messages = found.system_role ? with_system : only_parts ? parts : user;
  found.tools = Trials::Has(trials.Text(messages, TrialTools()), {kFunction});
  FindCallCapabilities(trials, &found);
  return found;
}

std::string CapabilitiesText(const ChatCapabilities& capabilities) {
  std::vector<std::string> words;
  if (capabilities.system_role) words.emplace_back("system");
  if (capabilities.text_content) words.emplace_back("text");
  if (capabilities.content_parts) words.emplace_back("parts");
  if (capabilities.tools) words.emplace_back("tools");
  if (capabilities.tool_calls) {
    words.emplace_back(capabilities.object_arguments ? "calls with objects" : "calls with texts");
  }
  if (capabilities.parallel_calls) words.emplace_back("parallel calls");
  if (capabilities.null_content) words.emplace_back("null content");
  if (capabilities.tool_role) words.emplace_back("answers of tools");
  return absl::StrJoin(words, ", ");
}

}  // namespace weft
