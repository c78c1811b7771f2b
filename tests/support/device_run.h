// A graph on one device, through the Device interface only: works on memory that is not the host's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "common/graph/graph.h"

namespace weft {

class DeviceRun {
 public:
  // Gives every tensor that owns memory a buffer of its own, between two guards, opens a backend
  // and prepares all nodes. `device` and `graph` outlive this object.
  static absl::StatusOr<std::unique_ptr<DeviceRun>> Create(Device& device, const Graph& graph,
                                                           BackendOptions options = {});

  // Whole tensors that own their memory.
  absl::Status Set(NodeId id, absl::Span<const uint8_t> bytes);
  absl::StatusOr<std::vector<uint8_t>> Get(NodeId id);

  // Launches and waits. Errors: those of the device; DATA_LOSS if a guard changed.
  absl::Status Run();

  Backend& backend() { return *backend_; }
  absl::Span<const TensorPlace> places() const { return places_; }

 private:
  DeviceRun(Device& device, const Graph& graph) : device_(device), graph_(graph) {}
  absl::Status Place();
  absl::Status CheckGuards(NodeId id);

  Device& device_;
  const Graph& graph_;
  int64_t guard_bytes_ = 0;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<TensorPlace> places_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Executable> executable_;
};

}  // namespace weft
