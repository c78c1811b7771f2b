// One session with one worker process: what it is, whether it still answers, its devices.
//
// A worker that does not answer pings, or ends the session, is lost for good: its object stays,
// every call in progress and every later one ends with the reason. A worker that was started again
// is another RemoteWorker; nothing that belongs to the old one is ever sent to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/host_address.h"
#include "common/base/log.h"
#include "common/device/device.h"
#include "common/host/host_facts.h"
#include "rpc_backend/protocol/grpc_tls/wire_security.h"

namespace weft {

class RemoteDevice;
class WorkerConnection;

struct RemoteWorkerOptions {
  std::string name =
      "w0";             // of the worker in this coordinator: device names and errors begin with it
  std::string address;  // as ParseHostAddress takes it
  std::string coordinator = "weft";  // who we are, for people on the other side
  // From the first packet to the open session.
  std::chrono::milliseconds connect_timeout{2500};
  // Of every call but those that load weights, while the worker answers: it may compute for long.
  // Whether the connection of the calls still moves is asked all the time, and answered within
  // `loss_after`.
  std::chrono::milliseconds call_timeout{30000};
  // Weights on their way to the worker: when nothing of them moves. What lies in the buffers of a
  // slow network must have left by then.
  std::chrono::milliseconds stall_timeout{10000};
  // While the worker looks for weights on its disks: when it reads nothing.
  std::chrono::milliseconds disk_timeout{60000};
  std::chrono::milliseconds ping_period{500};
  std::chrono::milliseconds loss_after{2500};
  WireSecurity security;
  // What its certificate must name; empty: the host of `address`.
  std::string tls_name;
};

// What a worker says about itself. Texts are fit to print.
struct RemoteWorkerInfo {
  std::string name;     // as it calls itself
  std::string release;  // of its program
  uint32_t protocol_major = 0;
  uint32_t protocol_minor = 0;
  std::string incarnation;            // 16 random bytes of the process
  std::string host_identity;          // equal on processes of one machine; may be empty
  std::vector<std::string> features;  // that both sides have
  std::vector<std::string> transports;
  bool draining = false;
  bool has_cache = false;
  int32_t sessions = 0;  // open before this one
};

// The machine that a worker runs on.
struct RemoteHost {
  HostFacts facts;
  // Its clock against this machine's, and how far that may be off: half a round trip.
  double clock_ahead_seconds = 0;
  double clock_error_seconds = 0;
};

struct PingStatistics {
  int64_t answered = 0;
  double last_us = 0;  // round trip
  double least_us = 0;
};

struct PeerStatistics {
  int32_t peer = 0;
  std::string transport;
  int64_t messages_sent = 0;
  int64_t bytes_sent = 0;
  int64_t messages_received = 0;
  int64_t bytes_received = 0;
  int64_t dropped = 0;
};

// Of this session, as the worker counts.
struct WorkerStatistics {
  int64_t steps = 0;
  int64_t programs_installed = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
  int64_t buffer_bytes = 0;
  std::vector<PeerStatistics> peers;
};

// Any thread may call. Outlives its devices' buffers and every FleetLink over it.
class RemoteWorker {
 public:
  // Says hello, takes stock of the devices, opens the session and starts to ping.
  // Errors, all with the worker's name: INVALID_ARGUMENT for options; FAILED_PRECONDITION for
  // another protocol or other operations, with both sides' versions and which to upgrade;
  // UNAVAILABLE where nobody answers or the worker drains; DEADLINE_EXCEEDED; INTERNAL for a reply
  // that makes no sense. `logger` may be null; else it outlives the worker.
  static absl::StatusOr<std::unique_ptr<RemoteWorker>> Connect(RemoteWorkerOptions options,
                                                               Logger* logger);
  // Says hello only: no session is opened. Errors: as above, but a worker that drains answers.
  static absl::StatusOr<RemoteWorkerInfo> Ask(RemoteWorkerOptions options);
  // Closes.
  ~RemoteWorker();
  RemoteWorker(const RemoteWorker&) = delete;
  RemoteWorker& operator=(const RemoteWorker&) = delete;

  const std::string& name() const;   // "w0"
  const std::string& label() const;  // "worker w0 (10.0.0.2:7000)"
  const HostAddress& address() const;
  const RemoteWorkerInfo& info() const { return info_; }
  const RemoteWorkerOptions& options() const;
  // In the worker's order, named "w0.cpu0", "w0.gpu1".
  absl::Span<RemoteDevice* const> remote_devices() const { return borrowed_; }
  absl::Span<Device* const> devices() const { return plain_; }

  // OK while it answers; else why not: UNAVAILABLE "worker w0 (...) did not answer for 2.5 s", or
  // CANCELLED after Close.
  absl::Status lost() const;
  // `listener` is called once when the worker is lost (at once if it is already), from a thread
  // that it must not block; not for Close. Returns a number for RemoveLossListener.
  int64_t AddLossListener(std::function<void(const absl::Status&)> listener);
  // Afterwards the listener does not run and will not.
  void RemoveLossListener(int64_t number);

  PingStatistics pings() const;
  // It said that it will go: it finishes what runs for a while, and takes no new sessions.
  bool draining() const;
  absl::StatusOr<WorkerStatistics> Statistics();
  // What its machine is. UNIMPLEMENTED where the worker's release does not tell.
  absl::StatusOr<RemoteHost> DescribeHost();
  // The worker takes no new sessions from now on. Returns how many are open.
  absl::StatusOr<int32_t> Drain();

  // Ends the session: the worker frees everything that it owns. Waits for no call; those in
  // progress end with CANCELLED. Idempotent.
  void Close();

  // For the parts of this folder.
  WorkerConnection& connection() { return *connection_; }
  const std::shared_ptr<WorkerConnection>& shared_connection() { return connection_; }

 private:
  explicit RemoteWorker(std::shared_ptr<WorkerConnection> connection);

  std::shared_ptr<WorkerConnection>
      connection_;  // with buffers, whose frees may still be under way
  RemoteWorkerInfo info_;
  std::vector<std::unique_ptr<RemoteDevice>> owned_;
  std::vector<RemoteDevice*> borrowed_;
  std::vector<Device*> plain_;
};

}  // namespace weft
