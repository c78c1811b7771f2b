#include "tests/support/planted_fault.h"

#include <unistd.h>

#include <csignal>

#include "absl/strings/str_cat.h"

namespace weft {

bool PlantedFault::Strike() {
  if (++seen != count) return false;
  const std::string line = absl::StrCat("fault: ", verb, " ", action_name, "\n");
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return false;
  if (action == FaultAction::kKill) raise(SIGKILL);
  if (action == FaultAction::kStop) raise(SIGSTOP);  // to this thread: it goes no further
  return true;
}

PlantedFault*& planted_fault() {
  static PlantedFault* planted = nullptr;
  return planted;
}

}  // namespace weft
