#include "tests/unit/common/program/program_fixture.h"

#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace weft {
namespace {

std::vector<uint8_t> TensorBytes(const Graph& graph, HostGraph& host, NodeId id) {
  const uint8_t* first = host.data()[static_cast<size_t>(Index(id))];
  return std::vector<uint8_t>(first, first + *ByteExtent(graph.layout(id)));
}

}  // namespace

std::vector<std::unique_ptr<FakeDevice>> MakeFakeDevices(int count, uint64_t seed) {
  std::vector<std::unique_ptr<FakeDevice>> devices;
  for (int i = 0; i < count; ++i) {
    FakeDeviceOptions options;
    options.name = absl::StrCat("fake", i);
    options.seed = seed * 100 + static_cast<uint64_t>(i);
    devices.push_back(std::make_unique<FakeDevice>(std::move(options)));
  }
  return devices;
}

std::vector<std::unique_ptr<FakeDevice>> MakeSharingDevices(uint64_t seed) {
  static constexpr DeviceKind kKinds[] = {DeviceKind::kCpu, DeviceKind::kAccelerator,
                                          DeviceKind::kGpu};
  std::vector<std::unique_ptr<FakeDevice>> devices;
  for (const DeviceKind kind : kKinds) {
    FakeDeviceOptions options;
    options.name = kind == DeviceKind::kCpu ? "host" : DeviceKindName(kind);
    options.kind = kind;
    options.seed = seed * 100 + devices.size();
    if (kind == DeviceKind::kAccelerator) options.shares_memory_of = devices[0].get();
    if (kind == DeviceKind::kGpu) options.accepted_buffer_types = {"host memory"};
    devices.push_back(std::make_unique<FakeDevice>(std::move(options)));
  }
  return devices;
}

std::vector<Device*> Borrow(const std::vector<std::unique_ptr<FakeDevice>>& devices) {
  std::vector<Device*> borrowed;
  borrowed.reserve(devices.size());
  for (const auto& device : devices) borrowed.push_back(device.get());
  return borrowed;
}

Clock::TimePoint Soon() { return SystemClock().Now() + std::chrono::seconds(60); }

void UploadBound(const Graph& graph, HostGraph& host, const BoundSlots& bound) {
  for (int32_t i = 0; i < graph.size(); ++i) {
    const LeafAttributes* leaf = graph.leaf(NodeId{i});
    if (leaf == nullptr) continue;
    if (leaf->kind != LeafKind::kWeight && leaf->kind != LeafKind::kCache) continue;
    const SlotKind kind = leaf->kind == LeafKind::kWeight ? SlotKind::kWeight : SlotKind::kCache;
    const SlotBinding& binding = bound.Find(kind, leaf->id);
    const std::vector<uint8_t> bytes = TensorBytes(graph, host, NodeId{i});
    WEFT_CHECK(binding.buffer->Set(binding.offset, bytes.data(), bytes.size()).ok());
  }
}

std::vector<std::vector<uint8_t>> InputBytes(const Graph& graph, HostGraph& host) {
  std::map<int32_t, std::vector<uint8_t>> by_id;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const LeafAttributes* leaf = graph.leaf(NodeId{i});
    if (leaf == nullptr || leaf->kind != LeafKind::kInput) continue;
    by_id[leaf->id] = TensorBytes(graph, host, NodeId{i});
  }
  std::vector<std::vector<uint8_t>> inputs;
  inputs.reserve(by_id.size());
  for (auto& [id, bytes] : by_id) inputs.push_back(std::move(bytes));
  return inputs;
}

std::vector<TableUpdate> TableContent(const Graph& graph, HostGraph& host) {
  std::vector<TableUpdate> updates;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const LeafAttributes* leaf = graph.leaf(NodeId{i});
    if (leaf == nullptr || leaf->kind != LeafKind::kPageTable) continue;
    const std::vector<int32_t> pages = host.I32(NodeId{i});
    for (size_t e = 0; e < pages.size(); ++e) {
      updates.push_back({leaf->id, static_cast<int32_t>(e), pages[e]});
    }
  }
  return updates;
}

std::vector<absl::Span<const uint8_t>> Spans(const std::vector<std::vector<uint8_t>>& inputs) {
  return {inputs.begin(), inputs.end()};
}

std::vector<std::vector<uint8_t>> OutputBytes(const Graph& graph, HostGraph& host) {
  std::vector<std::vector<uint8_t>> outputs;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (graph.node(NodeId{i}).output) outputs.push_back(TensorBytes(graph, host, NodeId{i}));
  }
  return outputs;
}

}  // namespace weft
