// Notices at once when clients close their connections, without a thread for each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"

namespace weft {

class ConnectionWatcher {
 public:
  // Errors: RESOURCE_EXHAUSTED where the system gives no thread or descriptor.
  static absl::StatusOr<std::unique_ptr<ConnectionWatcher>> Create();
  ~ConnectionWatcher();
  ConnectionWatcher(const ConnectionWatcher&) = delete;
  ConnectionWatcher& operator=(const ConnectionWatcher&) = delete;

  // Calls `left` once, on the watcher's thread, when the peer of `socket` has closed it or its half
  // of it. One watch a socket. Any thread, not from `left`.
  void Add(int socket, std::function<void()> left);
  // After this `left` is neither called nor running. Before the socket is closed.
  void Remove(int socket);

 private:
  ConnectionWatcher(int poll, int wake) : poll_(poll), wake_(wake) {}
  void Run();
  void Tell(int socket);

  const int poll_;  // epoll
  const int wake_;  // eventfd, readable when the watcher is to end
  Mutex mutex_;     // held while `left` runs
  std::map<int, std::function<void()>> watches_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace weft
