#include "common/http/waiting_clients.h"

#include <sys/socket.h>

namespace weft {

bool WaitingClients::Begin(int socket, bool between_requests, Clock::TimePoint since) {
  if (!between_requests && !all_) return true;
  {
    MutexLock lock(mutex_);
    waits_[socket] = {between_requests, since};
  }
  // Whoever comes from here on finds it in CutOne.
  if (!crowded_()) return true;
  if (between_requests) {
    End(socket);
    return false;
  }
  // This one has just been given its thread; another makes room.
  CutOneBut(socket);
  return true;
}

void WaitingClients::End(int socket) {
  MutexLock lock(mutex_);
  waits_.erase(socket);
}

void WaitingClients::CutOneBut(int spared) {
  MutexLock lock(mutex_);
  auto longest = waits_.end();
  for (auto wait = waits_.begin(); wait != waits_.end(); ++wait) {
    if (wait->first == spared) continue;
    const bool sooner = longest == waits_.end() ||
                        (wait->second.between_requests != longest->second.between_requests
                             ? wait->second.between_requests
                             : wait->second.since < longest->second.since);
    if (sooner) longest = wait;
  }
  if (longest == waits_.end()) return;
  ::shutdown(longest->first, SHUT_RDWR);
  waits_.erase(longest);
}

}  // namespace weft
