// The loop of a worker's main thread: signals and timers, until somebody ends it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace weft {

// Made, run and destroyed by one thread.
class EventLoop {
 public:
  // Errors: INTERNAL.
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();
  ~EventLoop();

  // Calls `handler` in Run when the process gets that signal.
  absl::Status OnSignal(int signal, std::function<void()> handler);
  // Calls `handler` in Run every `period`.
  absl::Status Every(std::chrono::milliseconds period, std::function<void()> handler);
  // Returns after Stop.
  void Run();
  // From a handler.
  void Stop();

 private:
  struct State;
  EventLoop();
  std::unique_ptr<State> state_;
};

}  // namespace weft
