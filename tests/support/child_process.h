// A child process that talks by lines on its standard input and output, and is always reaped.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"

namespace weft {

class ChildProcess {
 public:
  // Starts `arguments`, of which the first is a program, found by PATH; the environment is this
  // process's.
  explicit ChildProcess(const std::vector<std::string>& arguments);
  // Kills it if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool running() const { return pid_ > 0; }
  void Write(std::string_view line);
  // The next line without its end. DEADLINE_EXCEEDED; UNAVAILABLE when it has closed its output.
  absl::StatusOr<std::string> ReadLine(Clock::TimePoint deadline);
  // Writes a line and reads the next.
  absl::StatusOr<std::string> Ask(std::string_view line, Clock::TimePoint deadline);
  void Signal(int signal) const;
  // Kills it and waits for its end.
  void Kill();

 private:
  pid_t pid_ = -1;
  int input_ = -1;   // we write
  int output_ = -1;  // we read
  std::string read_;
};

}  // namespace weft
