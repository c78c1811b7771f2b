#include "tests/support/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"

namespace weft {

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  // A child that is gone is seen by its output ending, not by a signal.
  (void)signal(SIGPIPE, SIG_IGN);
  int to_child[2] = {-1, -1};
  int from_child[2] = {-1, -1};
  if (pipe2(to_child, O_CLOEXEC) != 0 || pipe2(from_child, O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t actions;
  (void)posix_spawn_file_actions_init(&actions);
  (void)posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  (void)posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
  (void)posix_spawn_file_actions_destroy(&actions);
  close(to_child[0]);
  close(from_child[1]);
  input_ = to_child[1];
  output_ = from_child[0];
}

ChildProcess::~ChildProcess() {
  Kill();
  if (input_ >= 0) close(input_);
  if (output_ >= 0) close(output_);
}

void ChildProcess::Write(std::string_view line) {
  const std::string text = absl::StrCat(AbslView(line), "\n");
  (void)!write(input_, text.data(), text.size());
}

absl::StatusOr<std::string> ChildProcess::ReadLine(Clock::TimePoint deadline) {
  const SystemClock clock;
  while (true) {
    const size_t end = read_.find('\n');
    if (end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock.Now()).count();
    pollfd descriptor = {.fd = output_, .events = POLLIN, .revents = 0};
    if (left < 0 || poll(&descriptor, 1, static_cast<int>(left) + 1) == 0) {
      return absl::DeadlineExceededError("the child process says nothing");
    }
    char buffer[4096];
    const ssize_t bytes = read(output_, buffer, sizeof buffer);
    if (bytes <= 0) return absl::UnavailableError("the child process has ended");
    read_.append(buffer, static_cast<size_t>(bytes));
  }
}

absl::StatusOr<std::string> ChildProcess::Ask(std::string_view line, Clock::TimePoint deadline) {
  Write(line);
  return ReadLine(deadline);
}

void ChildProcess::Signal(int signal) const {
  if (pid_ > 0) (void)kill(pid_, signal);
}

void ChildProcess::Kill() {
  if (pid_ <= 0) return;
  Signal(SIGKILL);
  (void)waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace weft
