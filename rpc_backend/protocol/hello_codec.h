// Hello: what coordinator and worker say of themselves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "rpc_backend/protocol/limits.h"
#include "rpc_backend/protocol/version.h"

namespace weft {

namespace proto {
class HelloRequest;
class HelloReply;
}  // namespace proto

struct CoordinatorHello {
  ProtocolHello protocol;
  std::string name;
  friend bool operator==(const CoordinatorHello&, const CoordinatorHello&) = default;
};

// A device of a worker: the answers to the static questions of Device and of its buffer type.
struct WorkerDevice {
  DeviceKind kind = DeviceKind::kCpu;
  std::string description;
  DeviceMemory memory;
  DeviceCapabilities capabilities;
  std::string buffer_type;
  int64_t alignment = 1;
  int64_t max_buffer_bytes = 0;
  bool buffer_is_host = false;
  std::string layout;          // of tensors in that buffer type
  bool pads = false;           // TensorBytes may exceed a tensor's extent: ask the worker
  std::vector<int32_t> reads;  // positions of the worker's devices whose memory it computes in
  BatchRange preferred_batch;
  std::vector<std::string> quarantined;  // what failed the self-test
  std::string arithmetic;                // Device::arithmetic(); empty from older releases
};

struct WorkerHello {
  ProtocolHello protocol;
  std::string name;
  std::string incarnation;    // 16 bytes of this process
  std::string host_identity;  // equal on both sides: one machine
  std::vector<WorkerDevice> devices;
  std::vector<std::string> transports;  // "ucx", "grpc"
  bool draining = false;
  bool has_cache = false;
  int32_t sessions = 0;
  int64_t ping_ms = 0;
  int64_t lease_ms = 0;
};

void EncodeHello(const CoordinatorHello& hello, proto::HelloRequest& message);
void EncodeHello(const WorkerHello& hello, proto::HelloReply& message);

// The version is decoded even where nothing else is known of the message: a side that speaks
// another major version gets only `protocol`, for CheckHello to refuse. Errors: those of
// CheckMessage; INVALID_ARGUMENT naming device and field.
absl::StatusOr<CoordinatorHello> DecodeHello(const proto::HelloRequest& message,
                                             const WireLimits& limits = {});
absl::StatusOr<WorkerHello> DecodeHello(const proto::HelloReply& message,
                                        const WireLimits& limits = {});

}  // namespace weft
