#include "worker/event_loop.h"

#include <uv.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

absl::Status LoopError(const char* what, int error) {
  return absl::InternalError(absl::StrCat(what, ": ", uv_strerror(error)));
}

template <typename Handle>
struct Watcher {
  Handle handle;
  std::function<void()> handler;
};

}  // namespace

struct EventLoop::State {
  uv_loop_t loop;
  // Handles must not move while the loop knows them.
  std::vector<std::unique_ptr<Watcher<uv_signal_t>>> signals;
  std::vector<std::unique_ptr<Watcher<uv_timer_t>>> timers;
};

EventLoop::EventLoop() : state_(std::make_unique<State>()) {}

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  std::unique_ptr<EventLoop> made(new EventLoop());
  const int error = uv_loop_init(&made->state_->loop);
  if (error == 0) return made;
  made->state_.reset();
  return LoopError("cannot make an event loop", error);
}

EventLoop::~EventLoop() {
  if (state_ == nullptr) return;
  for (const auto& watcher : state_->signals) {
    uv_close(reinterpret_cast<uv_handle_t*>(&watcher->handle), nullptr);
  }
  for (const auto& watcher : state_->timers) {
    uv_close(reinterpret_cast<uv_handle_t*>(&watcher->handle), nullptr);
  }
  uv_run(&state_->loop, UV_RUN_DEFAULT);  // lets the handles go
  uv_loop_close(&state_->loop);
}

absl::Status EventLoop::OnSignal(int signal, std::function<void()> handler) {
  auto watcher = std::make_unique<Watcher<uv_signal_t>>();
  watcher->handler = std::move(handler);
  watcher->handle.data = watcher.get();
  if (const int error = uv_signal_init(&state_->loop, &watcher->handle); error != 0) {
    return LoopError("cannot watch a signal", error);
  }
  uv_signal_t* const handle = &watcher->handle;
  state_->signals.push_back(std::move(watcher));
  const int error = uv_signal_start(
      handle, [](uv_signal_t* h, int) { static_cast<Watcher<uv_signal_t>*>(h->data)->handler(); },
      signal);
  return error == 0 ? absl::OkStatus() : LoopError("cannot watch a signal", error);
}

absl::Status EventLoop::Every(std::chrono::milliseconds period, std::function<void()> handler) {
  auto watcher = std::make_unique<Watcher<uv_timer_t>>();
  watcher->handler = std::move(handler);
  watcher->handle.data = watcher.get();
  if (const int error = uv_timer_init(&state_->loop, &watcher->handle); error != 0) {
    return LoopError("cannot make a timer", error);
  }
  uv_timer_t* const handle = &watcher->handle;
  state_->timers.push_back(std::move(watcher));
  const auto ms = static_cast<uint64_t>(period.count());
  const int error = uv_timer_start(
      handle, [](uv_timer_t* h) { static_cast<Watcher<uv_timer_t>*>(h->data)->handler(); }, ms, ms);
  return error == 0 ? absl::OkStatus() : LoopError("cannot make a timer", error);
}

void EventLoop::Run() { uv_run(&state_->loop, UV_RUN_DEFAULT); }

void EventLoop::Stop() { uv_stop(&state_->loop); }

}  // namespace weft
