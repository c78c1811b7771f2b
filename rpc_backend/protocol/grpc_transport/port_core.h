// The inside of a port over gRPC: its inbox and links under one lock, shared with the streams that
// gRPC drives.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/refusal_log.h"
#include "common/transport/inbox.h"
#include "common/transport/peer_proof.h"
#include "common/transport/strangers.h"
#include "rpc_backend/protocol/grpc_transport/data_link.h"

namespace weft {

class GrpcPortCore {
 public:
  explicit GrpcPortCore(const PortOptions& options) : options_(options), inbox_(options) {}
  // That of the port, for proofs; before the first connection.
  void SetAddress(const std::string& address);

  // --- for the port ---

  const PortOptions& options() const { return options_; }
  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
  Inbox& inbox() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return inbox_; }
  // Null for a number without a connection.
  DataLink* FindLink(int32_t peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks for the announced messages that the inbox has room for.
  void FetchWanted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeAll() {
    sent_.NotifyAll();
    changed_.NotifyAll();
  }
  // Waits until outgoing bytes of some link became fewer, or something is lost.
  bool AwaitSent(Clock::TimePoint deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return sent_.WaitUntil(mutex_, deadline);
  }
  // Ends all streams and waits until they are gone.
  void Shutdown();

  // --- connecting ---

  // A stream that this side opens to `peer`, whose number was added to the inbox and whose port is
  // `port` of `address`. Sends the hello with that nonce.
  void Open(const PortPeer& peer, int64_t port, std::string_view address, const PeerNonce& nonce,
            DataStream& stream);
  // Waits until the other side answered. On an error the number is free again.
  absl::Status AwaitWelcome(int32_t peer, Clock::TimePoint deadline);
  // What a stream that another port opened is to be answered; fills `handshake` for Accept. Errors:
  // UNAVAILABLE if no such port is expected.
  absl::StatusOr<proto::DataMessage> Challenge(const proto::DataMessage& hello,
                                               PeerHandshake& handshake);
  // Takes the stream for that of the peer, whose proof came, and welcomes it. Errors: UNAVAILABLE;
  // then this core does not know the stream.
  absl::Status Accept(const PeerHandshake& handshake, const proto::DataMessage& proof,
                      DataStream& stream);

  // --- for streams, from gRPC's threads ---

  // Whether to read on.
  bool Take(int32_t peer, DataStream& stream, proto::DataMessage& frame);
  void Written(int32_t peer, DataStream& stream);
  // Starts no frame any more.
  void StopWriting(int32_t peer, DataStream& stream);
  // The stream is over, and forgotten here. `why` is for people.
  void Close(int32_t peer, DataStream& stream, std::string_view why);
  // The stream does not call again. gRPC ends the process (1.51, an assertion on a count) where its
  // own thread frees a channel that is still connecting: `channel` is freed by Shutdown.
  void Gone(std::shared_ptr<void> channel);

 private:
  struct Connection {
    explicit Connection(DataLink data_link) : link(std::move(data_link)) {}
    DataLink link;
    PeerHandshake handshake;  // of a stream that this side opened, until it is welcomed
    bool answered = false;    // the challenge
    bool welcomed = false;
    bool over = false;
    std::string why;
  };
  Connection* Find(int32_t peer, const DataStream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The peer whose handshake may begin or end now. Errors: UNAVAILABLE.
  absl::StatusOr<const PortPeer*> Expected(int32_t peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AnswerChallenge(const proto::DataMessage& challenge, Connection& connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const PortOptions options_;
  const SystemClock clock_;
  Mutex mutex_;
  AddressDigest address_ ABSL_GUARDED_BY(mutex_) = {};
  Inbox inbox_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<void>> channels_ ABSL_GUARDED_BY(mutex_);  // of streams that are gone
  CondVar sent_;
  CondVar changed_;  // a connection was welcomed or closed, or a stream is gone
  std::map<int32_t, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
};

// The ports of a process by the number in their address, and streams that have not proved whose
// they are. Any thread may call.
class GrpcPortRegistry {
 public:
  // `logger` hears of streams that are refused; may be null.
  explicit GrpcPortRegistry(Logger* logger) : refusals_(logger, clock_, "a data connection") {}

  // Counts a stream from that address in, which may end one of those before it.
  void AddStranger(DataStream& stream, std::string from);
  // It proved itself or is over.
  void RemoveStranger(const DataStream& stream);
  void LogRefusal(std::string_view from, std::string_view why);

  // Returns its number.
  int64_t Add(const std::shared_ptr<GrpcPortCore>& port);
  void Remove(int64_t number);
  // Null where there is none.
  std::shared_ptr<GrpcPortCore> Find(int64_t number);

 private:
  struct Stranger {
    DataStream* stream = nullptr;
    std::string from;
    bool ended = false;
  };
  const SystemClock clock_;
  Mutex mutex_;
  RefusalLog refusals_ ABSL_GUARDED_BY(mutex_);
  std::vector<Stranger> strangers_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<int64_t, std::shared_ptr<GrpcPortCore>> ports_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
