// Ctrl-C as something to look at, instead of something that happens.
#pragma once

#include <csignal>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"

namespace weft {

class Interrupt {
 public:
  virtual ~Interrupt() = default;
  // Whether one came since the last call.
  virtual bool Take() = 0;
  // For poll(): readable while Take would say yes. -1: none.
  virtual int descriptor() const = 0;
};

// SIGINT of this process.
class SignalInterrupt final : public Interrupt {
 public:
  // Blocks the signal in this thread and those that it starts from now on. Errors: of the system.
  static absl::StatusOr<std::unique_ptr<SignalInterrupt>> Create();
  // The signal ends the process again.
  ~SignalInterrupt() override;
  SignalInterrupt(const SignalInterrupt&) = delete;
  SignalInterrupt& operator=(const SignalInterrupt&) = delete;

  bool Take() override;
  int descriptor() const override { return descriptor_; }

 private:
  explicit SignalInterrupt(const sigset_t& before) : before_(before) {}

  const sigset_t before_;
  int descriptor_ = -1;
};

// While it lives the signal ends the process, as it would without anybody who looks for it: for
// work that cannot be stopped otherwise.
class FatalInterrupt {
 public:
  // `interrupt` outlives it. Errors: of the system.
  static absl::StatusOr<std::unique_ptr<FatalInterrupt>> Create(const SignalInterrupt& interrupt);
  ~FatalInterrupt();
  FatalInterrupt(const FatalInterrupt&) = delete;
  FatalInterrupt& operator=(const FatalInterrupt&) = delete;

 private:
  FatalInterrupt() = default;

  int over_ = -1;  // readable when it is
  std::thread thread_;
};

}  // namespace weft
