#include "coordinator/meta/meta_device.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace weft {
namespace {

absl::Status NothingHere(const std::string& name) {
  return absl::UnimplementedError(absl::StrCat(name, " stands for its ranks and holds nothing"));
}

}  // namespace

// Stands for the memories of all ranks: only asked, never allocated from.
class MetaDevice::Memory final : public BufferType {
 public:
  explicit Memory(MetaDevice& device)
      : device_(device), name_(absl::StrCat(device.name(), " memory")) {}

  const std::string& name() const override { return name_; }
  Device& device() const override { return device_; }
  int64_t alignment() const override {
    int64_t most = 1;
    for (Device* rank : device_.ranks()) most = std::max(most, rank->buffer_type().alignment());
    return most;
  }
  int64_t max_bytes() const override {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (Device* rank : device_.ranks()) least = std::min(least, rank->buffer_type().max_bytes());
    return least;
  }
  int64_t TensorBytes(const TensorLayout& layout) const override {
    int64_t most = 0;
    for (Device* rank : device_.ranks()) {
      most = std::max(most, rank->buffer_type().TensorBytes(layout));
    }
    return most;
  }
  bool is_host() const override { return false; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t, BufferUsage) override {
    return NothingHere(device_.name());
  }

 private:
  MetaDevice& device_;
  const std::string name_;
};

MetaDevice::MetaDevice(std::string name, std::vector<Device*> ranks)
    : name_(std::move(name)), ranks_(std::move(ranks)), memory_(std::make_unique<Memory>(*this)) {
  description_ = absl::StrCat(ranks_.size(), " ranks: ",
                              absl::StrJoin(ranks_, ", ", [](std::string* out, const Device* rank) {
                                out->append(rank->name());
                              }));
}

MetaDevice::~MetaDevice() = default;

absl::StatusOr<std::unique_ptr<MetaDevice>> MetaDevice::Create(std::string name,
                                                               std::vector<Device*> ranks) {
  if (ranks.empty()) return absl::InvalidArgumentError(absl::StrCat(name, " has no ranks"));
  std::set<const Device*> seen;
  for (Device* rank : ranks) {
    if (!seen.insert(rank).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(rank->name(), " is a rank of ", name, " twice"));
    }
    if (rank->kind() == DeviceKind::kAccelerator || rank->kind() == DeviceKind::kMeta) {
      return absl::InvalidArgumentError(
          absl::StrCat(rank->name(), " has no memory of its own and can be no rank of ", name));
    }
  }
  return std::unique_ptr<MetaDevice>(new MetaDevice(std::move(name), std::move(ranks)));
}

DeviceMemory MetaDevice::memory() const {
  DeviceMemory sum;
  for (const Device* rank : ranks_) {
    const DeviceMemory memory = rank->memory();
    if (memory.free_bytes == 0 && memory.total_bytes == 0) return {};
    sum.free_bytes += memory.free_bytes;
    sum.total_bytes += memory.total_bytes;
  }
  return sum;
}

DeviceCapabilities MetaDevice::capabilities() const {
  DeviceCapabilities all{.async = true, .events = true};
  for (const Device* rank : ranks_) {
    const DeviceCapabilities one = rank->capabilities();
    all.async = all.async && one.async;
    all.events = all.events && one.events;
  }
  return all;
}

BufferType& MetaDevice::buffer_type() { return *memory_; }

Support MetaDevice::Supports(const Graph& graph, NodeId id) const {
  for (const Device* rank : ranks_) {
    RETURN_IF_ERROR(rank->Supports(graph, id));
  }
  return absl::OkStatus();
}

Support MetaDevice::Supports(const BufferType& type) const {
  if (&type == memory_.get()) return absl::OkStatus();
  return CannotRead(*this, type);
}

BatchRange MetaDevice::preferred_batch() const {
  BatchRange all;
  for (const Device* rank : ranks_) {
    const BatchRange one = rank->preferred_batch();
    all.min = std::max(all.min, one.min);
    all.max = std::min(all.max, one.max);
  }
  return all;
}

int64_t MetaDevice::WorkspaceBytes(const Graph& graph, NodeId id) const {
  int64_t most = 0;
  for (const Device* rank : ranks_) most = std::max(most, rank->WorkspaceBytes(graph, id));
  return most;
}

absl::StatusOr<std::unique_ptr<Buffer>> MetaDevice::WrapHostMemory(void*, int64_t, BufferUsage) {
  return NothingHere(name_);
}

absl::StatusOr<std::unique_ptr<Backend>> MetaDevice::OpenBackend(BackendOptions) {
  return NothingHere(name_);
}

}  // namespace weft
