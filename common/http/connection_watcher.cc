#include "common/http/connection_watcher.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace weft {

absl::StatusOr<std::unique_ptr<ConnectionWatcher>> ConnectionWatcher::Create() {
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  // Owns both from here on.
  std::unique_ptr<ConnectionWatcher> watcher(new ConnectionWatcher(poll, wake));
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = wake;
  if (poll < 0 || wake < 0 || ::epoll_ctl(poll, EPOLL_CTL_ADD, wake, &event) != 0) {
    return absl::ResourceExhaustedError("the system has no more file descriptors");
  }
  ASSIGN_OR_RETURN(watcher->thread_, StartThread([w = watcher.get()] { w->Run(); }));
  return watcher;
}

ConnectionWatcher::~ConnectionWatcher() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    while (::write(wake_, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    thread_.join();
  }
  if (poll_ >= 0) ::close(poll_);
  if (wake_ >= 0) ::close(wake_);
}

void ConnectionWatcher::Add(int socket, std::function<void()> left) {
  MutexLock lock(mutex_);
  watches_[socket] = std::move(left);
  epoll_event event = {};
  event.events = EPOLLRDHUP | EPOLLONESHOT;
  event.data.fd = socket;
  ::epoll_ctl(poll_, EPOLL_CTL_ADD, socket, &event);
}

void ConnectionWatcher::Remove(int socket) {
  MutexLock lock(mutex_);
  if (watches_.erase(socket) > 0) ::epoll_ctl(poll_, EPOLL_CTL_DEL, socket, nullptr);
}

void ConnectionWatcher::Tell(int socket) {
  MutexLock lock(mutex_);
  const auto watch = watches_.find(socket);
  // It may have been removed, or be a new one of the same number, which then is told again.
  if (watch == watches_.end() || !watch->second) return;
  std::exchange(watch->second, nullptr)();
}

void ConnectionWatcher::Run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int count = ::epoll_wait(poll_, events.data(), events.size(), -1);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == wake_) return;
      Tell(events[i].data.fd);
    }
  }
}

}  // namespace weft
