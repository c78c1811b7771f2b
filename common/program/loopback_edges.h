// Edges between processes that live in one: a mailbox per process. For tests, and as the model of
// what ports over a network do.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/program/edge_port.h"

namespace weft {

struct LoopbackOptions {
  int32_t processes = 1;
  // Most that one mailbox holds: messages sent and not yet received.
  int64_t mailbox_messages = 1 << 12;
  int64_t mailbox_bytes = int64_t{1} << 30;
  // The loss of one process ends every wait, as in collectives.
  bool needs_all = false;
};

// What went from one process to another.
struct EdgeTraffic {
  int64_t messages = 0;
  int64_t bytes = 0;
  int64_t dropped = 0;  // messages of retired steps
};

// Thread-safe. Outlives whoever uses its ports.
class LoopbackEdges {
 public:
  explicit LoopbackEdges(const LoopbackOptions& options);
  ~LoopbackEdges();

  // The end of that process.
  EdgePort& port(int32_t process);

  // Everything that waits, sends or receives from now on fails with this error.
  void Abort(const absl::Status& status);
  // The same for one process, and for what others exchange with it.
  void AbortProcess(int32_t process, const absl::Status& status);

  EdgeTraffic traffic(int32_t from, int32_t to);
  // Messages that wait to be received by that process.
  int64_t waiting(int32_t process);

 private:
  class Port;
  struct Key {
    int64_t step = 0;
    int32_t edge = 0;
    int32_t sender = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Key& key) {
      return H::combine(std::move(hash), key.step, key.edge, key.sender);
    }
  };
  struct Mailbox {
    Mutex mutex;
    CondVar changed;
    absl::flat_hash_map<Key, std::vector<uint8_t>> messages ABSL_GUARDED_BY(mutex);
    int64_t bytes ABSL_GUARDED_BY(mutex) = 0;
    int64_t retired ABSL_GUARDED_BY(mutex) = 0;
    std::vector<EdgeTraffic> from ABSL_GUARDED_BY(mutex);        // by sender
    absl::Status lost ABSL_GUARDED_BY(mutex);                    // of the process itself
    std::vector<absl::Status> lost_from ABSL_GUARDED_BY(mutex);  // of senders
  };

  absl::Status CheckPeer(int32_t peer) const;
  absl::Status Put(int32_t to, const Key& key, absl::Span<const uint8_t> bytes);
  absl::Status Take(int32_t at, const Key& key, int64_t bytes, TakeBytes take,
                    Clock::TimePoint deadline, const std::atomic<bool>& stop);
  absl::Status TakeMessage(int32_t at, const Key& key, std::vector<uint8_t>& message,
                           Clock::TimePoint deadline, const std::atomic<bool>& stop);

  const LoopbackOptions options_;
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;  // by receiver
  std::vector<std::unique_ptr<Port>> ports_;
};

}  // namespace weft
