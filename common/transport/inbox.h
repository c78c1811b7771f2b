// What has arrived at a port and was not read yet, by key, within bounds; who waits for what; which
// peers are lost. Shared by all implementations of MessagePort.
//
// It moves no bytes and has no lock: the port's mutex guards it, and its condition variables are
// used with that mutex. Small messages are stored as they come. Large ones are offered by their
// sender and fetched when somebody waits for them or there is room.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/transport/message_port.h"
#include "common/transport/transport.h"

namespace weft {

class Inbox {
 public:
  explicit Inbox(const PortOptions& options) : options_(options) {}

  // A thread that waits: lives on its stack between Enter and Leave.
  struct Waiter {
    explicit Waiter(const MessageFilter& wanted, const std::atomic<bool>* stop_flag = nullptr)
        : filter(wanted), stop(stop_flag) {}
    MessageFilter filter;
    const std::atomic<bool>* stop;
    CondVar changed;  // notified when Poll may have another answer
  };

  // --- peers ---

  // Errors: INVALID_ARGUMENT for a number that is negative or the port's own; ALREADY_EXISTS.
  absl::Status AddPeer(const PortPeer& peer);
  // Forgets a peer that never connected.
  void RemovePeer(int32_t peer);
  // Marks the connection as usable, with the name of what carries it.
  void ConnectPeer(int32_t peer, std::string transport);
  // Nothing more comes from this peer, and its offers are void. `why` gets the peer's name in
  // front. Only the first call counts.
  void LosePeer(int32_t peer, const absl::Status& why);
  // OK if messages can be sent to it; else why not.
  absl::Status CheckPeer(int32_t peer) const;
  // Whether all known peers are connected: nothing yet, OK, or the first loss.
  std::optional<absl::Status> AllConnected() const;
  // The error of a wait for peers whose deadline has passed: names the first that is missing.
  absl::Status PeersMissing() const;
  // "peer 3 (w1)", for errors; for any number.
  std::string PeerText(int32_t peer) const;
  // Null for an unknown number.
  const PortPeer* FindPeer(int32_t peer) const;

  // --- arrival ---

  // Stores a small message. A foreign epoch is dropped and counted; a header out of range or a peer
  // ahead of its bounds fails the port.
  void Store(Message message);
  // Registers a large message that its sender still holds, and returns its ticket; or nothing, if
  // it is refused: dropped, or the port failed.
  std::optional<int64_t> Offer(int32_t peer, const MessageHeader& header, int64_t bytes);
  struct Wanted {
    int64_t ticket = 0;
    int64_t bytes = 0;
  };
  // The next offer whose bytes may be fetched now; from then on room is kept for it.
  std::optional<Wanted> NextWanted();
  // The bytes of a wanted offer are here. Ignored if its peer is lost.
  void Fetched(int64_t ticket, Payload payload);
  // They will not come: the peer that offered them is lost.
  void FetchFailed(int64_t ticket, const absl::Status& why);

  // --- reading ---

  void Enter(Waiter& waiter) { waiters_.push_back(&waiter); }
  void Leave(Waiter& waiter) { waiters_.remove(&waiter); }
  // A message, or the error that ends the wait; nothing while there is reason to wait.
  std::optional<absl::StatusOr<Message>> Poll(const Waiter& waiter);
  // The error of a wait whose deadline has passed.
  absl::Status TimedOut(const MessageFilter& filter) const;
  // The error of a Send that waited too long for earlier bytes to leave.
  absl::Status SendTimedOut(int32_t peer, const MessageHeader& header) const;
  void WakeAll();
  // Wakes one thread that waits, other than `except`: to take over the work of it. A patient one
  // only if there is no other, and if it may be.
  void WakeAnother(const Waiter* except, bool patient_too = true);
  bool has_waiters() const { return !waiters_.empty(); }

  // --- state and counters ---

  void Abort(absl::Status reason);
  const absl::Status& aborted() const { return aborted_; }  // OK if not
  const absl::Status& failure() const { return failure_; }
  void CountSent(int32_t peer, uint32_t kind, int64_t bytes);
  std::vector<PeerTraffic> traffic() const;
  int64_t stored_bytes() const { return stored_bytes_; }
  // Header and bounds of a message to send. INVALID_ARGUMENT names what is wrong.
  absl::Status TooLarge(int64_t bytes) const;
  absl::Status CheckOutgoing(int32_t peer, const MessageHeader& header, int64_t bytes) const;

 private:
  struct Peer {
    PortPeer info;
    PeerTraffic traffic;
    bool connected = false;
    absl::Status lost;  // OK while it is not
    int64_t unread_messages = 0;
    int64_t unread_eager_bytes = 0;
  };
  struct Entry {
    Message message;
    int64_t bytes = 0;
    int64_t ticket = -1;  // of an offer; -1 for a stored message
    bool wanted = false;
    bool here = false;
    bool eager = false;
  };

  // False if the message is refused, after counting it or failing the port.
  bool Admit(int32_t peer, const MessageHeader& header, int64_t bytes, bool eager);
  // Whether a thread waits for the offer and has nothing else on its way: so that each of them
  // takes at most one message beyond the bound.
  bool IsAwaited(const Entry& offer) const;
  Entry* FindTicket(int64_t ticket);
  void Remove(std::deque<Entry>& entries, size_t index);
  void NotifyMatching(int32_t peer, const MessageHeader& header);
  // The loss that leaves nobody who could send what the filter wants; OK if somebody could.
  absl::Status Unreachable(const MessageFilter& filter) const;

  PortOptions options_;
  std::map<int32_t, Peer> peers_;
  std::array<std::deque<Entry>, kMessageKinds> entries_;
  std::list<Waiter*> waiters_;
  absl::Status aborted_;
  absl::Status failure_;
  int64_t stored_bytes_ = 0;
  int64_t next_ticket_ = 0;
  int64_t offers_ = 0;  // not wanted yet
};

}  // namespace weft
