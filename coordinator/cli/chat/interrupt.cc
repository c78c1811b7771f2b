#include "coordinator/cli/chat/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace weft {
namespace {

// A signal that waits is delivered to the first thread that lets it, and ends the process.
void EndAtSignal(int signal, int over) {
  std::array<pollfd, 2> wait = {{{signal, POLLIN, 0}, {over, POLLIN, 0}}};
  while (poll(wait.data(), wait.size(), -1) < 0) {
  }
  if (wait[0].revents == 0) return;
  sigset_t signals = {};
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SignalInterrupt>> SignalInterrupt::Create() {
  sigset_t signals = {};
  sigset_t before = {};
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  std::unique_ptr<SignalInterrupt> interrupt(new SignalInterrupt(before));
  interrupt->descriptor_ = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
  if (interrupt->descriptor_ < 0) return absl::ErrnoToStatus(errno, "cannot wait for Ctrl-C");
  return interrupt;
}

SignalInterrupt::~SignalInterrupt() {
  if (descriptor_ >= 0) {
    Take();
    close(descriptor_);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool SignalInterrupt::Take() {
  bool came = false;
  signalfd_siginfo signal = {};
  while (read(descriptor_, &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
    came = true;
  }
  return came;
}

absl::StatusOr<std::unique_ptr<FatalInterrupt>> FatalInterrupt::Create(
    const SignalInterrupt& interrupt) {
  std::unique_ptr<FatalInterrupt> fatal(new FatalInterrupt());
  fatal->over_ = eventfd(0, EFD_CLOEXEC);
  if (fatal->over_ < 0) return absl::ErrnoToStatus(errno, "cannot wait for Ctrl-C");
  ASSIGN_OR_RETURN(fatal->thread_,
                   StartThread([signal = interrupt.descriptor(), over = fatal->over_] {
                     EndAtSignal(signal, over);
                   }));
  return fatal;
}

FatalInterrupt::~FatalInterrupt() {
  if (over_ < 0) return;
  const uint64_t one = 1;
  while (write(over_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  if (thread_.joinable()) thread_.join();
  close(over_);
}

}  // namespace weft
