// Where strangers knock: listens, looks at the first bytes of each connection, and lets through
// only beginnings of TLS 1.3 (or, without TLS, of HTTP/2), few at a time. What stands before it is
// bounded in number, bytes and time, whatever arrives.
//
// gRPC would take any number of connections, and stop listening for good once the process has no
// file descriptors left.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/host_address.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/refusal_log.h"

namespace weft {

// What a connection begins with that is let through.
enum class GateProtocol { kTls13, kHttp2 };

struct GateLimits {
  // For the first bytes, and then for the handshake, which is with whoever was given the
  // connection: so long each may go on without anybody known on the other side. A connection that
  // was handed over keeps its place so long even if it is closed: handshakes cost time.
  std::chrono::milliseconds first_bytes{3000};
  std::chrono::milliseconds handshake{5000};
  // Of connections in that state: all, and from one address (of IPv6: one /64 network).
  size_t connections = 256;
  size_t connections_per_host = 64;
};

class ConnectionGate {
 public:
  // Takes a connection, not blocking, and what was read of it. Called from the gate's thread.
  using Take = std::function<void(int descriptor, std::string first_bytes)>;

  // Listens on every address of that host when it returns, but accepts only once started. All
  // outlive it. Errors: UNAVAILABLE naming the address; RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<ConnectionGate>> Listen(
      const HostAddress& address, const GateLimits& limits, const Clock& clock, Logger& logger,
      GateProtocol protocol = GateProtocol::kTls13);
  ~ConnectionGate();

  int32_t port() const { return port_; }
  absl::Status Start(Take take);
  // The other side of a connection has shown who it is: its place is free. `peer` is "1.2.3.4:567"
  // or "[::1]:567"; others are ignored. Any thread may call.
  void SetKnown(std::string_view peer);
  // Listens no more; waits for a call of Take to return.
  void Stop();

 private:
  struct Visitor {
    std::string host;  // that is counted
    std::string name;  // "1.2.3.4:567" or "[::1]:567"
    std::string bytes;
    Clock::TimePoint deadline;
  };
  struct Admission {
    std::string host;
    Clock::TimePoint until;
  };

  ConnectionGate(const GateLimits& limits, const Clock& clock, Logger& logger,
                 GateProtocol protocol)
      : limits_(limits),
        clock_(clock),
        protocol_(protocol),
        refusals_(&logger, clock, "a connection") {}
  absl::Status Bind(const HostAddress& address);
  void Run();
  // False: stop.
  bool Wait();
  void Accept(int listener);
  void Read(int descriptor);
  // What is late or no longer counts.
  void Expire();
  void Admit(int descriptor);
  void Refuse(int descriptor, std::string_view why);
  // Whether there is a place for one more from that host; then it is taken.
  bool TakePlace(const std::string& host);
  void FreePlace(const std::string& host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const GateLimits limits_;
  const Clock& clock_;
  const GateProtocol protocol_;
  int32_t port_ = 0;
  std::vector<int> listeners_;
  int stop_ = -1;  // an eventfd
  Take take_;
  // Of the thread:
  std::map<int, Visitor> visitors_;
  Clock::TimePoint pause_until_;  // no descriptors left
  RefusalLog refusals_;

  Mutex mutex_;
  // By name: whose handshake may still go on.
  std::map<std::string, Admission, std::less<>> admitted_ ABSL_GUARDED_BY(mutex_);
  // By host: places that are taken. None is 0.
  std::map<std::string, size_t> places_ ABSL_GUARDED_BY(mutex_);
  size_t all_places_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;
};

}  // namespace weft
