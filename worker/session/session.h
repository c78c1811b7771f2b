// All that one connection of a coordinator owns in a worker: buffers, weights, and the epoch that
// runs its programs. Dropped as a whole when the connection ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/device/device.h"
#include "common/program/program_host.h"
#include "common/transport/transport.h"
#include "worker/self_test/quarantine.h"
#include "worker/session/epoch.h"
#include "worker/session/worker_meter.h"
#include "worker/weights/buffer_table.h"
#include "worker/weights/model_files.h"
#include "worker/weights/weight_cache.h"
#include "worker/weights/weight_loader.h"

namespace weft {

// What all sessions of a worker share. Everything outlives them.
struct WorkerParts {
  std::vector<Device*> devices;
  std::vector<Quarantine> quarantines;  // of each device; empty if none was tested
  std::vector<Transport*> transports;   // by preference
  ModelFiles* files = nullptr;
  WeightCache* cache = nullptr;  // may be null
  Logger* logger = nullptr;
  WorkerMeter* meter = nullptr;  // may be null
};

// One binding of a program's weight or cache slot.
struct HandleBinding {
  SlotKind kind = SlotKind::kWeight;
  int32_t id = 0;
  int64_t buffer = 0;
  int64_t offset = 0;
};

struct Instantiated {
  InstanceId instance{};
  HostCounters counters;
};

struct SessionStatistics {
  EpochCounters epoch;
  std::vector<PeerTraffic> peers;
  int64_t buffer_bytes = 0;
};

// Any thread may call. Programs, instances and peers are those of the newest epoch.
class Session {
 public:
  Session(int64_t id, std::string coordinator, const WorkerParts& parts);
  // Ends what is in flight.
  ~Session();

  int64_t id() const { return id_; }
  const std::string& coordinator() const { return coordinator_; }

  // Errors: INVALID_ARGUMENT for a device or size; RESOURCE_EXHAUSTED.
  absl::StatusOr<int64_t> Allocate(int32_t device, int64_t bytes, BufferUsage usage);
  // Instances that bind it are released first. Errors: NOT_FOUND.
  absl::Status Free(int64_t buffer);
  absl::Status Fill(int64_t buffer, int64_t offset, int64_t bytes, uint8_t value);
  absl::Status Write(int64_t buffer, int64_t offset, absl::Span<const uint8_t> data);
  absl::Status Read(int64_t buffer, int64_t offset, absl::Span<uint8_t> data);
  WeightLoader& weights() { return weights_; }

  // Ends the epoch before it and returns the address of the new one's port. Errors:
  // INVALID_ARGUMENT unless the number grows; UNAVAILABLE for an unknown transport.
  absl::StatusOr<std::string> OpenEpoch(const std::string& transport, EpochOptions options);
  // Errors: FAILED_PRECONDITION for another epoch than the newest; those of MessagePort::Connect.
  absl::Status Connect(uint32_t epoch, const PortPeer& peer, const std::string& address,
                       Clock::TimePoint deadline);

  absl::StatusOr<ProgramId> Install(Program program);
  absl::StatusOr<Instantiated> Instantiate(ProgramId program,
                                           absl::Span<const HandleBinding> bindings);
  absl::Status Release(InstanceId instance);

  // The newest epoch, kept alive by the result. Errors: FAILED_PRECONDITION before the first.
  absl::StatusOr<std::shared_ptr<Epoch>> epoch() const;
  SessionStatistics statistics() const;
  // Everything that waits ends with `reason`.
  void Abort(absl::Status reason);

 private:
  absl::Status CheckDevice(int32_t device) const;

  // Held while instances learn of buffers and while buffers go away, so that none is bound too
  // late.
  Mutex binding_mutex_;
  const int64_t id_;
  const std::string coordinator_;
  const WorkerParts& parts_;
  BufferTable buffers_;
  WeightLoader weights_;
  mutable Mutex mutex_;
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);
  uint32_t epoch_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<Epoch> epoch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
