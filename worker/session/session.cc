#include "worker/session/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "rpc_backend/protocol/limits.h"

namespace weft {

Session::Session(int64_t id, std::string coordinator, const WorkerParts& parts)
    : id_(id),
      coordinator_(std::move(coordinator)),
      parts_(parts),
      buffers_(WireLimits().buffers),
      weights_(parts.devices, buffers_, *parts.files, parts.cache, parts.logger) {}

Session::~Session() { Abort(absl::CancelledError("the session has ended")); }

absl::Status Session::CheckDevice(int32_t device) const {
  if (device >= 0 && device < static_cast<int64_t>(parts_.devices.size())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("device ", device, " of ", parts_.devices.size()));
}

absl::StatusOr<int64_t> Session::Allocate(int32_t device, int64_t bytes, BufferUsage usage) {
  RETURN_IF_ERROR(CheckDevice(device));
  BufferType& type = parts_.devices[device]->buffer_type();
  if (bytes < 0 || bytes > type.max_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("a buffer of ", bytes, " bytes; ", type.name(),
                                                   " gives at most ", type.max_bytes()));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer, type.Allocate(bytes, usage));
  return buffers_.Add({nullptr, std::move(buffer), device, true});
}

absl::Status Session::Free(int64_t buffer) {
  MutexLock lock(binding_mutex_);
  ASSIGN_OR_RETURN(const OwnedBuffer owned, buffers_.Remove(buffer));
  const absl::StatusOr<std::shared_ptr<Epoch>> current = epoch();
  if (current.ok()) (*current)->InvalidateBuffer(owned.buffer.get());
  return absl::OkStatus();
}

absl::Status Session::Fill(int64_t buffer, int64_t offset, int64_t bytes, uint8_t value) {
  ASSIGN_OR_RETURN(const OwnedBuffer owned, buffers_.FindWritable(buffer));
  return owned.buffer->Fill(offset, value, bytes);
}

absl::Status Session::Write(int64_t buffer, int64_t offset, absl::Span<const uint8_t> data) {
  ASSIGN_OR_RETURN(const OwnedBuffer owned, buffers_.FindWritable(buffer));
  return owned.buffer->Set(offset, data.data(), static_cast<int64_t>(data.size()));
}

absl::Status Session::Read(int64_t buffer, int64_t offset, absl::Span<uint8_t> data) {
  ASSIGN_OR_RETURN(const OwnedBuffer owned, buffers_.Find(buffer));
  return owned.buffer->Get(offset, data.data(), static_cast<int64_t>(data.size()));
}

absl::StatusOr<std::string> Session::OpenEpoch(const std::string& transport, EpochOptions options) {
  const auto found =
      std::find_if(parts_.transports.begin(), parts_.transports.end(),
                   [&transport](const Transport* t) { return t->name() == transport; });
  if (found == parts_.transports.end()) {
    return absl::UnavailableError(absl::StrCat("this worker has no transport '", transport, "'"));
  }
  std::shared_ptr<Epoch> old;
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(ended_);
    if (options.epoch <= epoch_number_) {
      return absl::InvalidArgumentError(
          absl::StrCat("epoch ", options.epoch, " does not follow ", epoch_number_));
    }
    epoch_number_ = options.epoch;
    old = std::exchange(epoch_, nullptr);
  }
  if (old != nullptr) old->Abort(absl::AbortedError("a newer epoch was opened"));
  old.reset();  // joins its threads before the devices serve the next
  options.meter = parts_.meter;
  options.weights_status = [this] { return weights_.check().status(); };
  ASSIGN_OR_RETURN(std::shared_ptr<Epoch> opened,
                   Epoch::Open(parts_.devices, **found, options, *parts_.logger));
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(ended_);
  if (epoch_number_ != options.epoch) return absl::AbortedError("a newer epoch was opened");
  epoch_ = opened;
  return opened->address();
}

absl::StatusOr<std::shared_ptr<Epoch>> Session::epoch() const {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(ended_);
  if (epoch_ == nullptr) return absl::FailedPreconditionError("no epoch is open");
  return epoch_;
}

absl::Status Session::Connect(uint32_t epoch_number, const PortPeer& peer,
                              const std::string& address, Clock::TimePoint deadline) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Epoch> current, epoch());
  if (current->number() != epoch_number) {
    return absl::FailedPreconditionError(
        absl::StrCat("epoch ", epoch_number, " is not open, but ", current->number()));
  }
  return current->port().Connect(peer, address, deadline);
}

absl::StatusOr<ProgramId> Session::Install(Program program) {
  if (program.devices.size() > parts_.devices.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a program for ", program.devices.size(),
                                                   " devices; this worker has ",
                                                   parts_.devices.size()));
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<Epoch> current, epoch());
  return current->Install(std::move(program));
}

absl::StatusOr<Instantiated> Session::Instantiate(ProgramId program,
                                                  absl::Span<const HandleBinding> bindings) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Epoch> current, epoch());
  MutexLock lock(binding_mutex_);
  std::vector<SlotBinding> slots;
  for (const HandleBinding& binding : bindings) {
    ASSIGN_OR_RETURN(const OwnedBuffer owned, buffers_.Find(binding.buffer));
    if (binding.kind == SlotKind::kCache && !owned.writable) {
      return absl::InvalidArgumentError(absl::StrCat("cache ", binding.id, " cannot lie in buffer ",
                                                     binding.buffer, ", which shows a file"));
    }
    slots.push_back({binding.kind, binding.id, owned.buffer.get(), binding.offset});
  }
  ASSIGN_OR_RETURN(const InstanceId instance, current->host().Instantiate(program, slots));
  return Instantiated{instance, current->host().counters()};
}

absl::Status Session::Release(InstanceId instance) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Epoch> current, epoch());
  return current->host().Release(instance);
}

SessionStatistics Session::statistics() const {
  SessionStatistics statistics;
  statistics.buffer_bytes = buffers_.bytes();
  const absl::StatusOr<std::shared_ptr<Epoch>> current = epoch();
  if (current.ok()) {
    statistics.epoch = (*current)->counters();
    statistics.peers = (*current)->port().traffic();
  }
  return statistics;
}

void Session::Abort(absl::Status reason) {
  std::shared_ptr<Epoch> current;
  {
    MutexLock lock(mutex_);
    if (ended_.ok()) ended_ = reason;
    current = std::exchange(epoch_, nullptr);
  }
  if (current != nullptr) current->Abort(std::move(reason));
}

}  // namespace weft
