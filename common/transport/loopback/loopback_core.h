// The inside of a LoopbackNetwork: all its ports under one lock.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/transport/inbox.h"
#include "common/transport/loopback/loopback_network.h"

namespace weft {

class LoopbackNetwork::Core {
 public:
  // One port's state, guarded by mutex_.
  struct Port {
    Port(std::string port_address, const PortOptions& port_options)
        : address(std::move(port_address)), options(port_options), inbox(port_options) {}
    std::string address;
    PortOptions options;
    Inbox inbox;
    struct Link {
      Port* other = nullptr;       // null while unconnected or lost
      int32_t number_there = -1;   // what the other side calls this port
      int64_t outgoing_bytes = 0;  // held by a rule or offered, not fetched yet
    };
    std::map<int32_t, Link> links;
    // Large messages of peers that this port has not fetched, by its inbox's tickets.
    struct Parcel {
      int32_t from = -1;
      Payload payload;
    };
    std::map<int64_t, Parcel> parcels;
    CondVar sent;  // outgoing bytes became fewer, or a peer was lost
  };

  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }

  Port& Add(const PortOptions& options) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(Port& port) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Connect(Port& port, const PortPeer& peer, std::string_view address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hands a message to the rule and then to the other side.
  void Post(Port& port, int32_t peer, const MessageHeader& header, Payload payload)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fetches what the port's inbox wants.
  void Fetch(Port& port) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Lose(Port& port, int32_t peer, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void SetRule(LoopbackRule rule);
  void ReleaseHeld();
  int64_t held_messages();
  void Disconnect(std::string_view address, std::string_view other);

 private:
  struct Held {
    std::string address;  // of the sender
    int32_t peer = -1;
    MessageHeader header;
    Payload payload;
  };

  Port* Find(std::string_view address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(Port& port, int32_t peer, const MessageHeader& header, Payload payload)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Returned(Port& receiver, int32_t from, int64_t bytes);

  Mutex mutex_;
  std::map<std::string, std::unique_ptr<Port>, std::less<>> ports_ ABSL_GUARDED_BY(mutex_);
  int64_t next_port_ ABSL_GUARDED_BY(mutex_) = 0;
  LoopbackRule rule_ ABSL_GUARDED_BY(mutex_);
  std::deque<Held> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
