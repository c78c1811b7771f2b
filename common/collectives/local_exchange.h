// Messages between the ranks of one process, each on a thread of its own: a mailbox per rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/collectives/schedule_runner.h"

namespace weft {

// Any thread may call; of those that receive at one place only one at a time. Its memory is kept
// and used again.
class LocalExchange {
 public:
  // Places are numbered from 0.
  explicit LocalExchange(int32_t places);

  // What a message is found by, at its place.
  struct Key {
    int64_t step = 0;
    int32_t id = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };

  // Errors: RESOURCE_EXHAUSTED if too much waits there; the reason of Abort.
  absl::Status Send(int32_t to, const Key& key, absl::Span<const uint8_t> bytes);
  // Polls for a short time, yielding the processor, then sleeps. Errors: DATA_LOSS for another
  // size; DEADLINE_EXCEEDED; CANCELLED once *stop is set and Wake was called; the reason of Abort.
  absl::Status Receive(int32_t at, const Key& key, int64_t bytes, Clock::TimePoint deadline,
                       const std::atomic<bool>* stop, TakeBytes take);
  // Everyone who waits looks at its stop flag.
  void Wake();
  // Nobody receives messages of steps up to this one any more.
  void Retire(int64_t step);
  // Everything that waits, and every later call, ends with `reason`.
  void Abort(const absl::Status& reason);

 private:
  struct Message {
    Key key;
    std::vector<uint8_t> bytes;
  };
  struct Mailbox {
    // Grows with every change; read without the mutex to see whether to look.
    std::atomic<uint64_t> changes = 0;
    Mutex mutex;
    CondVar changed;
    bool asleep ABSL_GUARDED_BY(mutex) = false;
    std::vector<Message> messages ABSL_GUARDED_BY(mutex);
    std::vector<std::vector<uint8_t>> spare ABSL_GUARDED_BY(mutex);
    int64_t retired ABSL_GUARDED_BY(mutex) = -1;
    absl::Status aborted ABSL_GUARDED_BY(mutex);
    int waits_without_polling = 0;  // of the receiving thread
  };

  static void Note(Mailbox& mailbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mailbox.mutex);
  // Takes the message with that key out, or leaves `found` as it is.
  static bool TakeMessage(Mailbox& mailbox, const Key& key, Message& found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mailbox.mutex);
  // Until something changed since `seen` or polling is no longer worth while.
  void Poll(Mailbox& mailbox, uint64_t seen) const;

  const SystemClock clock_;
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;
};

// The link of one rank to others of the process: rank r receives at place r.
class LocalLink final : public RankLink {
 public:
  // `exchange` outlives it.
  LocalLink(LocalExchange& exchange, int32_t rank) : exchange_(exchange), rank_(rank) {}
  absl::Status Send(const CollectiveCall& call, int32_t to, int32_t number,
                    absl::Span<const uint8_t> bytes) override;
  absl::Status Receive(const CollectiveCall& call, int32_t from, int32_t number, int64_t bytes,
                       TakeBytes take) override;
  void Abort(absl::Status reason) override { exchange_.Abort(reason); }

 private:
  LocalExchange& exchange_;
  const int32_t rank_;
};

}  // namespace weft
