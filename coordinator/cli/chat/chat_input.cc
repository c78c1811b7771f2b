#include "coordinator/cli/chat/chat_input.h"

#include <array>

#include "absl/strings/ascii.h"
#include "common/base/absl_view.h"

namespace weft {
namespace {

struct Command {
  std::string_view name;
  ChatInput::Kind kind;
};

constexpr std::array<Command, 5> kCommands = {{{"reset", ChatInput::Kind::kReset},
                                               {"save", ChatInput::Kind::kSave},
                                               {"help", ChatInput::Kind::kHelp},
                                               {"quit", ChatInput::Kind::kQuit},
                                               {"exit", ChatInput::Kind::kQuit}}};

std::string_view Stripped(std::string_view text) {
  return StdView(absl::StripAsciiWhitespace(AbslView(text)));
}

}  // namespace

ChatInput ParseChatInput(std::string_view line) {
  const std::string_view text = Stripped(line);
  if (text.empty()) return {};
  if (text[0] != '/') return {ChatInput::Kind::kMessage, std::string(text)};
  if (text.starts_with("//")) return {ChatInput::Kind::kMessage, std::string(text.substr(1))};
  const size_t end = text.find_first_of(" \t");
  const std::string_view name = text.substr(1, end == std::string_view::npos ? end : end - 1);
  const std::string_view rest =
      end == std::string_view::npos ? std::string_view() : Stripped(text.substr(end));
  for (const Command& command : kCommands) {
    if (name != command.name) continue;
    // "/reset now" is no command that we know.
    if (!rest.empty() && command.kind != ChatInput::Kind::kSave) break;
    return {command.kind, std::string(rest)};
  }
  return {ChatInput::Kind::kUnknown, std::string(text)};
}

}  // namespace weft
