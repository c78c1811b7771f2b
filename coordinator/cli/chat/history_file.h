// Where `weft chat` keeps what was typed.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace weft {

// "STATE/weft/chat_history", where STATE is `state_home` if that is an absolute path, else
// "HOME/.local/state"; empty if neither is one.
std::string HistoryPath(const std::string& state_home, const std::string& home);

// Makes the file, and folders on the way to it, for the user alone. Errors: of the file system,
// naming the path; FAILED_PRECONDITION if it is no regular file.
absl::Status PrepareHistoryFile(const std::string& path);

}  // namespace weft
