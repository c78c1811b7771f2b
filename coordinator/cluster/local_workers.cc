#include "coordinator/cluster/local_workers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

extern char** environ;

namespace weft {
namespace {

constexpr int32_t kMaxWorkers = 256;
constexpr std::chrono::seconds kStartTime{20};
constexpr std::chrono::seconds kEndTime{3};
constexpr std::chrono::milliseconds kPoll{5};

// "weft-worker" in the folder of this program.
std::string DefaultBinary() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "weft-worker" : (self.parent_path() / "weft-worker").string();
}

absl::StatusOr<std::string> MakeFolder() {
  std::error_code error;
  const std::filesystem::path base = std::filesystem::temp_directory_path(error);
  std::string pattern = absl::StrCat(error ? "/tmp" : base.string(), "/weft-XXXXXX");
  if (mkdtemp(pattern.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a folder ", pattern));
  }
  return pattern;
}

// Ours without the certificates, which are the coordinator's; valid as long as ours is.
std::vector<char*> EnvironmentOfWorkers() {
  std::vector<char*> kept;
  for (char** at = environ; *at != nullptr; ++at) {
    if (!absl::StartsWith(*at, "WEFT_TLS=")) kept.push_back(*at);
  }
  kept.push_back(nullptr);
  return kept;
}

// Returns when the process has ended, or after `period`.
void WaitBriefly(pid_t process, std::chrono::milliseconds period) {
  // The C library of Debian 12 declares its wrapper for C only.
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  pollfd wait = {descriptor, POLLIN, 0};
  poll(&wait, descriptor < 0 ? 0 : 1, static_cast<int>(period.count()));
  if (descriptor >= 0) close(descriptor);
}

bool HasEnded(pid_t process, std::string& how) {
  int state = 0;
  if (waitpid(process, &state, WNOHANG) != process) return false;
  how = WIFSIGNALED(state) ? absl::StrCat("was ended by signal ", WTERMSIG(state))
                           : absl::StrCat("ended with exit code ", WEXITSTATUS(state));
  return true;
}

// Whether somebody listens: the file is there some time before.
bool Accepts(const std::string& path) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path) return false;
  std::copy(path.begin(), path.end(), name.sun_path);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  const bool accepts =
      connect(descriptor, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  close(descriptor);
  return accepts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalWorkers>> LocalWorkers::Spawn(
    const LocalWorkersOptions& options) {
  if (options.count < 1 || options.count > kMaxWorkers) {
    return absl::InvalidArgumentError(
        absl::StrCat("--local-workers: ", options.count, ", want 1 to ", kMaxWorkers));
  }
  std::unique_ptr<LocalWorkers> workers(new LocalWorkers());
  ASSIGN_OR_RETURN(workers->folder_, MakeFolder());
  for (int32_t i = 0; i < options.count; ++i) RETURN_IF_ERROR(workers->Start(options, i));
  for (int32_t i = 0; i < options.count; ++i) RETURN_IF_ERROR(workers->AwaitSocket(i));
  return workers;
}

absl::Status LocalWorkers::Start(const LocalWorkersOptions& options, int32_t index) {
  const std::string binary = options.binary.empty() ? DefaultBinary() : options.binary;
  if (access(binary.c_str(), X_OK) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("--local-workers: there is no program ", binary));
  }
  sockets_.push_back(absl::StrCat(folder_, "/w", index, ".sock"));
  addresses_.push_back(absl::StrCat("unix:", sockets_.back()));
  std::vector<std::string> arguments = {binary,
                                        "--listen",
                                        addresses_.back(),
                                        "--name",
                                        absl::StrCat("local", index),
                                        "--threads",
                                        absl::StrCat(std::max(1, options.threads / options.count)),
                                        "--parent",
                                        absl::StrCat(getpid()),
                                        "--remove-folder",
                                        "--transport",
                                        options.transport == "tls" ? "grpc" : options.transport,
                                        "--quiet"};
  if (!options.instruction_set.empty()) {
    arguments.insert(arguments.end(), {"--isa", options.instruction_set});
  }
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<char*> environment = EnvironmentOfWorkers();
  // A process group of its own: Ctrl-C in a terminal reaches the coordinator, which ends its
  // workers in order.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Nor does it inherit signals that the coordinator blocks: SIGTERM would not end it.
  sigset_t no_signals;
  sigemptyset(&no_signals);
  posix_spawnattr_setsigmask(&attributes, &no_signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  pid_t process = 0;
  const int error =
      posix_spawn(&process, binary.c_str(), &files, &attributes, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", binary));
  processes_.push_back(process);
  return absl::OkStatus();
}

absl::Status LocalWorkers::AwaitSocket(int32_t index) {
  const SystemClock clock;
  const Clock::TimePoint deadline = clock.Now() + kStartTime;
  while (!Accepts(sockets_[index])) {
    std::string how;
    if (HasEnded(processes_[index], how)) {
      processes_[index] = 0;
      return absl::UnavailableError(absl::StrCat("local worker ", index, " ", how));
    }
    if (clock.Now() > deadline) {
      return absl::UnavailableError(absl::StrCat("local worker ", index, " does not listen"));
    }
    WaitBriefly(processes_[index], kPoll);
  }
  return absl::OkStatus();
}

LocalWorkers::~LocalWorkers() {
  const SystemClock clock;
  for (const pid_t process : processes_) {
    if (process > 0) kill(process, SIGTERM);
  }
  const Clock::TimePoint deadline = clock.Now() + kEndTime;
  for (const pid_t process : processes_) {
    if (process <= 0) continue;
    std::string how;
    while (!HasEnded(process, how)) {
      // A stopped process does not see the first signal.
      if (clock.Now() > deadline) kill(process, SIGKILL);
      WaitBriefly(process, kPoll);
    }
  }
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace weft
