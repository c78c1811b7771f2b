// Runs programs in a worker: they are sent once, then a step is one message there and one back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/program/program_host.h"
#include "common/transport/message_port.h"

namespace weft {

class RemoteWorker;
class WorkerConnection;

// Beside HostCounters; since the host was made.
struct RemoteHostCounters {
  int64_t program_sends = 0;
  int64_t messages_sent = 0;  // of steps
  int64_t bytes_sent = 0;
  int64_t messages_received = 0;
  int64_t bytes_received = 0;
  double compute_seconds = 0;     // of the busiest stream, summed over steps
  double wait_seconds = 0;        // of that stream, for others
  double round_trip_seconds = 0;  // from Launch until Await had the reply
};

struct RemoteProgramHostOptions {
  RemoteWorker* worker = nullptr;  // outlives the host
  MessagePort* port = nullptr;     // connected to the worker; outlives the host
  int32_t peer = 0;                // the worker's number at the port
  uint32_t epoch = 0;
  // Finds the cause of an error with code UNAVAILABLE: the loss of a worker, which may be another
  // one, and may become known a little later than what follows from it. Empty: this worker's.
  std::function<absl::Status(const absl::Status&)> explain;
};

// One worker in one epoch. Any thread may call; a step is awaited by one thread. Errors name the
// worker.
class RemoteProgramHost final : public ProgramHost {
 public:
  explicit RemoteProgramHost(const RemoteProgramHostOptions& options);
  ~RemoteProgramHost() override;

  // Program::devices are the worker's, by position in its inventory.
  absl::StatusOr<ProgramId> Install(Program program) override;
  // Every buffer is one of this worker and session; else INVALID_ARGUMENT.
  absl::StatusOr<InstanceId> Instantiate(ProgramId program,
                                         absl::Span<const SlotBinding> bindings) override;
  absl::Status Release(InstanceId instance) override;
  absl::Status Launch(InstanceId instance, const StepInput& input) override;
  // Errors beside those of the interface: UNAVAILABLE when the worker is lost; INTERNAL for a reply
  // that makes no sense.
  absl::StatusOr<StepOutput> Await(int64_t step, Clock::TimePoint deadline) override;
  absl::Status Cancel(int64_t step) override;
  HostCounters counters() override;

  RemoteHostCounters remote_counters();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
