// Which connections wait for their clients, so that one can be let go when a thread is missing.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace weft {

// Any thread.
class WaitingClients {
 public:
  // `crowded`: whether connections wait for a thread. `all`: clients in the midst of a request may
  // be let go as well, not only those between two.
  WaitingClients(std::function<bool()> crowded, bool all)
      : crowded_(std::move(crowded)), all_(all) {}

  // The connection of `socket` begins to wait for its client; `since`: when its request began.
  // False: it has to end instead.
  bool Begin(int socket, bool between_requests, Clock::TimePoint since);
  // Before the socket is closed.
  void End(int socket);

  // Cuts the connection that waits longest, first among those between requests.
  void CutOne() { CutOneBut(-1); }

 private:
  struct Wait {
    bool between_requests = false;
    Clock::TimePoint since;
  };

  void CutOneBut(int spared);

  const std::function<bool()> crowded_;
  const bool all_;
  Mutex mutex_;
  std::map<int, Wait> waits_ ABSL_GUARDED_BY(mutex_);  // by socket; those that may be cut
};

}  // namespace weft
