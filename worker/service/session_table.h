// The sessions of a worker by id, with their leases.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "worker/session/session.h"

namespace weft {

// Thread-safe.
class SessionTable {
 public:
  // `lease`: how long a session lives without a sign of its coordinator.
  SessionTable(const WorkerParts& parts, const Clock& clock, std::chrono::milliseconds lease,
               int64_t limit)
      : parts_(parts), clock_(clock), lease_(lease), limit_(limit) {}

  // Ids are random: what a coordinator still sends to an earlier process at this address, or
  // guesses, finds no session. `end` is called, from any thread and at most once, when the session
  // has to go: its connection is to be closed, whose handler then calls Remove. Errors: UNAVAILABLE
  // while draining; RESOURCE_EXHAUSTED.
  absl::StatusOr<std::shared_ptr<Session>> Open(std::string coordinator,
                                                std::function<void(const std::string&)> end);
  // Errors: NOT_FOUND naming the id.
  absl::StatusOr<std::shared_ptr<Session>> Find(int64_t id) const;
  // The coordinator lives.
  void Touch(int64_t id);
  void Remove(int64_t id, const absl::Status& reason);

  // Ends those whose lease is over; to be called now and then.
  void EndSilent();
  // Ends all, with that word to their coordinators.
  void EndAll(const std::string& reason);
  // No new ones from now on.
  void Drain();
  bool draining() const;
  // Whether Open would give a session.
  bool accepts() const;
  // Memory that sessions hold.
  int64_t buffer_bytes() const;
  int32_t count() const;
  // Waits until at most so many are open; false: not by then.
  bool AwaitCount(int32_t most, Clock::TimePoint deadline) const;

 private:
  absl::Status CheckRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Entry {
    std::shared_ptr<Session> session;
    std::function<void(const std::string&)> end;  // empty once called
    Clock::TimePoint last_sign;
  };

  const WorkerParts& parts_;
  const Clock& clock_;
  const std::chrono::milliseconds lease_;
  const int64_t limit_;
  mutable Mutex mutex_;
  mutable CondVar removed_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<int64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
