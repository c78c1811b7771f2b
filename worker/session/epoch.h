// One epoch of a session: its data plane, and the programs that run behind it.
//
// A thread of its own takes the coordinator's messages; the thread of the device that finishes a
// step sends the reply. Ends as a whole: when a peer is lost, everything that waits in it ends with
// that error, and the coordinator opens the next.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/device/device.h"
#include "common/program/edge_port.h"
#include "common/program/local_program_host.h"
#include "common/transport/message_port.h"
#include "common/transport/transport.h"
#include "worker/session/worker_meter.h"

namespace weft {

struct StepReply;

struct EpochOptions {
  uint32_t epoch = 0;
  int32_t own_number = 0;
  int32_t coordinator_number = 0;
  SessionKey key = {};
  std::vector<PortPeer> expected;  // peers that will connect
  // Why no step may be computed: weights that turned out to be damaged. May be empty.
  std::function<absl::Status()> weights_status;
  WorkerMeter* meter = nullptr;  // may be null
};

// What an epoch did.
struct EpochCounters {
  int64_t steps = 0;
  int64_t programs = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
};

class Epoch {
 public:
  // All outlive it. Errors: those of the port and of LocalProgramHost.
  static absl::StatusOr<std::unique_ptr<Epoch>> Open(absl::Span<Device* const> devices,
                                                     Transport& transport,
                                                     const EpochOptions& options, Logger& logger);
  // Ends what is in flight and joins the threads.
  ~Epoch();

  uint32_t number() const { return options_.epoch; }
  int32_t coordinator_number() const { return options_.coordinator_number; }
  // Where the peers of this epoch find its port.
  const std::string& address() const { return port_->address(); }
  MessagePort& port() { return *port_; }
  ProgramHost& host() { return *host_; }
  // For buffers that go away.
  void InvalidateBuffer(const Buffer* buffer) { host_->InvalidateBuffer(buffer); }
  absl::StatusOr<ProgramId> Install(Program program);
  EpochCounters counters();
  // Everything that waits ends with `reason`; the epoch stays unusable.
  void Abort(absl::Status reason) { port_->Abort(std::move(reason)); }

 private:
  Epoch(const EpochOptions& options, Logger& logger) : options_(options), logger_(logger) {}
  // The thread: messages of the coordinator until the port ends.
  void Run();
  void Handle(Message message);
  void HandleExecute(int64_t step, const Payload& payload);
  // On the thread of the device that finished it.
  void Reply(int64_t step);
  void ReplyError(int64_t step, const absl::Status& status);
  void Send(int64_t step, const StepReply& reply);
  // For the meter, once it is sent.
  void NoteEnd(int64_t step, const StepReply& reply);

  const EpochOptions options_;
  Logger& logger_;
  const SystemClock clock_;
  std::unique_ptr<MessagePort> port_;
  std::unique_ptr<EdgePort> edges_;
  std::unique_ptr<EdgePort> collectives_;
  std::unique_ptr<LocalProgramHost> host_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;

  // Of the thread.
  int64_t next_step_ = 1;
  std::map<int64_t, Payload> early_;  // steps that came before the one that is next
  absl::Status broken_;               // a step could not be started: neither can those after it

  Mutex mutex_;
  EpochCounters counters_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Clock::TimePoint> arrived_ ABSL_GUARDED_BY(mutex_);  // steps under way
};

}  // namespace weft
