#include "coordinator/cli/chat/history_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace weft {

std::string HistoryPath(const std::string& state_home, const std::string& home) {
  if (state_home.starts_with("/")) return absl::StrCat(state_home, "/weft/chat_history");
  if (home.starts_with("/")) return absl::StrCat(home, "/.local/state/weft/chat_history");
  return "";
}

absl::Status PrepareHistoryFile(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      return absl::ErrnoToStatus(errno, absl::StrCat(folder, ": cannot make the folder"));
    }
  }
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot open"));
  struct stat status = {};
  absl::Status result;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    result = absl::FailedPreconditionError(absl::StrCat(path, ": is no regular file"));
  } else if (fchmod(file, 0600) != 0) {
    result = absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot set permissions"));
  }
  close(file);
  return result;
}

}  // namespace weft
