#include "rpc_backend/protocol/hello_codec.h"

#include <algorithm>
#include <array>

#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "proto/worker.pb.h"
#include "rpc_backend/protocol/clean_text.h"
#include "rpc_backend/protocol/field_error.h"
#include "rpc_backend/protocol/message_check.h"

namespace weft {
namespace {

constexpr int64_t kNameBytes = WireLimits{}.name_bytes;

// --- Version ---

template <typename Message>
void EncodeProtocol(const ProtocolHello& protocol, Message& message) {
  message.mutable_version()->set_major(protocol.major);
  message.mutable_version()->set_minor(protocol.minor);
  message.mutable_version()->set_release(CleanText(protocol.release, kNameBytes));
  message.set_op_set(protocol.op_set.Raw());
  for (const std::string& feature : protocol.features) message.add_features(feature);
}

// Of a message that was not checked yet.
ProtocolHello DecodeVersion(const proto::ProtocolVersion& version) {
  ProtocolHello protocol;
  protocol.major = version.major();
  protocol.minor = version.minor();
  protocol.release = CleanText(version.release(), kNameBytes);
  return protocol;
}

// Of a message that was.
template <typename Message>
ProtocolHello DecodeProtocol(const Message& message) {
  ProtocolHello protocol = DecodeVersion(message.version());
  protocol.op_set = Sha256Digest::FromRaw(message.op_set()).value_or(Sha256Digest{});
  protocol.features.assign(message.features().begin(), message.features().end());
  return protocol;
}

// --- Devices ---

constexpr std::array<DeviceKind, 3> kLocalKinds = {DeviceKind::kCpu, DeviceKind::kGpu,
                                                   DeviceKind::kAccelerator};

void EncodeDevice(const WorkerDevice& device, proto::DeviceInfo& message) {
  message.set_kind(std::string(DeviceKindName(device.kind)));
  message.set_description(CleanText(device.description, kNameBytes));
  message.set_memory_free(device.memory.free_bytes);
  message.set_memory_total(device.memory.total_bytes);
  message.set_async(device.capabilities.async);
  message.set_events(device.capabilities.events);
  message.set_host_memory(device.capabilities.host_memory);
  message.set_wraps_host_memory(device.capabilities.wraps_host_memory);
  message.set_buffer_type(CleanText(device.buffer_type, kNameBytes));
  message.set_alignment(device.alignment);
  message.set_max_buffer_bytes(device.max_buffer_bytes);
  message.set_buffer_is_host(device.buffer_is_host);
  message.set_layout(CleanText(device.layout, kNameBytes));
  message.set_pads(device.pads);
  message.mutable_reads()->Assign(device.reads.begin(), device.reads.end());
  message.set_batch_min(device.preferred_batch.min);
  message.set_batch_max(device.preferred_batch.max);
  for (const std::string& reason : device.quarantined) {
    message.add_quarantined(CleanText(reason, WireLimits{}.reason_bytes));
  }
  message.set_arithmetic(CleanText(device.arithmetic, kNameBytes));
}

absl::StatusOr<WorkerDevice> DecodeDevice(const proto::DeviceInfo& message, int device_count) {
  WorkerDevice device;
  const auto* kind = std::find_if(kLocalKinds.begin(), kLocalKinds.end(), [&](DeviceKind known) {
    return DeviceKindName(known) == message.kind();
  });
  if (kind == kLocalKinds.end()) {
    return BadField("kind", absl::StrCat("'", message.kind(), "'"), "want cpu, gpu or accel");
  }
  device.kind = *kind;
  device.description = message.description();
  device.memory = {message.memory_free(), message.memory_total()};
  device.capabilities = {message.async(), message.events(), message.host_memory(),
                         message.wraps_host_memory()};
  device.buffer_type = message.buffer_type();
  device.alignment = message.alignment();
  if (!IsPowerOfTwo(device.alignment)) {
    return BadField("alignment", device.alignment, "not a power of two");
  }
  device.max_buffer_bytes = message.max_buffer_bytes();
  device.buffer_is_host = message.buffer_is_host();
  device.layout = message.layout();
  device.pads = message.pads();
  for (const int32_t other : message.reads()) {
    RETURN_IF_ERROR(CheckField("reads", other, 0, device_count - 1));
    device.reads.push_back(other);
  }
  device.preferred_batch = {message.batch_min(), message.batch_max()};
  device.quarantined.assign(message.quarantined().begin(), message.quarantined().end());
  device.arithmetic = message.arithmetic();
  return device;
}

}  // namespace

void EncodeHello(const CoordinatorHello& hello, proto::HelloRequest& message) {
  EncodeProtocol(hello.protocol, message);
  message.set_coordinator(CleanText(hello.name, kNameBytes));
}

void EncodeHello(const WorkerHello& hello, proto::HelloReply& message) {
  EncodeProtocol(hello.protocol, message);
  message.set_name(CleanText(hello.name, kNameBytes));
  message.set_incarnation(hello.incarnation);
  message.set_host_identity(CleanText(hello.host_identity, kNameBytes));
  for (const WorkerDevice& device : hello.devices) EncodeDevice(device, *message.add_devices());
  for (const std::string& transport : hello.transports) message.add_transports(transport);
  message.set_draining(hello.draining);
  message.set_has_cache(hello.has_cache);
  message.set_sessions(hello.sessions);
  message.set_ping_ms(hello.ping_ms);
  message.set_lease_ms(hello.lease_ms);
}

absl::StatusOr<CoordinatorHello> DecodeHello(const proto::HelloRequest& message,
                                             const WireLimits& limits) {
  CoordinatorHello hello;
  hello.protocol = DecodeVersion(message.version());
  if (hello.protocol.major != kProtocolMajor) return hello;
  RETURN_IF_ERROR(CheckMessage(message, limits));
  hello.protocol = DecodeProtocol(message);
  hello.name = message.coordinator();
  return hello;
}

absl::StatusOr<WorkerHello> DecodeHello(const proto::HelloReply& message,
                                        const WireLimits& limits) {
  WorkerHello hello;
  hello.protocol = DecodeVersion(message.version());
  if (hello.protocol.major != kProtocolMajor) return hello;
  RETURN_IF_ERROR(CheckMessage(message, limits));
  hello.protocol = DecodeProtocol(message);
  hello.name = message.name();
  hello.incarnation = message.incarnation();
  hello.host_identity = message.host_identity();
  for (int i = 0; i < message.devices_size(); ++i) {
    absl::StatusOr<WorkerDevice> device = DecodeDevice(message.devices(i), message.devices_size());
    if (!device.ok()) return InPlace(absl::StrCat("hello: device ", i), device.status());
    hello.devices.push_back(*std::move(device));
  }
  hello.transports.assign(message.transports().begin(), message.transports().end());
  hello.draining = message.draining();
  hello.has_cache = message.has_cache();
  hello.sessions = message.sessions();
  hello.ping_ms = message.ping_ms();
  hello.lease_ms = message.lease_ms();
  return hello;
}

}  // namespace weft
