// Several devices that look like one to the scheduler and to placement: tensor parallelism's ranks.
//
// It answers static questions and computes nothing: what the scheduler puts on it is expanded into
// one tensor per rank before programs are made (rank_graph.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/device.h"

namespace weft {

class MetaDevice final : public Device {
 public:
  // `ranks` outlive it. Errors: INVALID_ARGUMENT for no ranks, one listed twice, or one that has no
  // memory of its own.
  static absl::StatusOr<std::unique_ptr<MetaDevice>> Create(std::string name,
                                                            std::vector<Device*> ranks);
  ~MetaDevice() override;

  const std::vector<Device*>& ranks() const { return ranks_; }

  const std::string& name() const override { return name_; }
  const std::string& description() const override { return description_; }
  DeviceKind kind() const override { return DeviceKind::kMeta; }
  // Its own: it shares the memory of no host.
  const std::string& host() const override { return name_; }
  // Sums; unknown if one is.
  DeviceMemory memory() const override;
  // What all have.
  DeviceCapabilities capabilities() const override;
  BufferType& buffer_type() override;

  // All ranks can: the whole op stands for its slices, which are smaller.
  Support Supports(const Graph& graph, NodeId id) const override;
  Support Supports(const BufferType& type) const override;
  // What all ranks prefer.
  BatchRange preferred_batch() const override;
  bool Wants(const Graph&, NodeId) const override { return false; }
  int64_t WorkspaceBytes(const Graph& graph, NodeId id) const override;

  absl::StatusOr<std::unique_ptr<Buffer>> WrapHostMemory(void*, int64_t, BufferUsage) override;
  absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(BackendOptions) override;

 private:
  class Memory;
  MetaDevice(std::string name, std::vector<Device*> ranks);

  const std::string name_;
  const std::vector<Device*> ranks_;
  std::string description_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace weft
