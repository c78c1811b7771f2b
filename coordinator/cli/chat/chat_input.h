// What a line typed into `weft chat` means.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

struct ChatInput {
  enum class Kind : uint8_t {
    kEmpty,    // an empty line
    kMessage,  // for the model
    kReset,
    kSave,  // `text` is the file; empty: none was named
    kHelp,
    kQuit,
    kUnknown,  // `text` is the command
  };
  Kind kind = Kind::kEmpty;
  std::string text;
};

// Commands begin with a slash; "//" begins a message with one. White space around is left out.
ChatInput ParseChatInput(std::string_view line);

}  // namespace weft
