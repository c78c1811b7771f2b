#include "tests/unit/coordinator/scheduler/random_fleet.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

bool OneIn(Random& random, int n) { return random.Between(0, n - 1) == 0; }

std::string HostName(int64_t host) { return host == 0 ? "local" : absl::StrCat("w", host - 1); }

template <typename T>
void Shuffle(Random& random, std::vector<T>& values) {
  for (size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[random.Between(0, static_cast<int64_t>(i) - 1)]);
  }
}

void RefuseSome(Random& random, FakeDeviceOptions& options) {
  const int64_t style = random.Between(0, 2);
  for (int32_t op = 1; style > 0 && op < kOpCount; ++op) {
    if (OneIn(random, style == 1 ? 6 : 2)) options.refused_ops.push_back(static_cast<Op>(op));
  }
  if (OneIn(random, 4)) options.refused_dtypes.push_back(DType::kF16);
  if (OneIn(random, 6)) options.refused_dtypes.push_back(DType::kI32);
  if (OneIn(random, 4)) {
    const int64_t rest = random.Between(0, 2);
    options.refuses = [rest](const Graph& graph, NodeId id) {
      return graph.layout(id).ne[1] % 3 == rest;
    };
  }
}

FakeDeviceOptions RandomDevice(Random& random, const FleetShape& shape, DeviceKind kind,
                               int64_t host) {
  FakeDeviceOptions options;
  options.kind = kind;
  options.host = HostName(host);
  options.seed = static_cast<uint64_t>(random.Between(1, 1 << 20));
  options.delays = shape.delays;
  options.offload_batch = OneIn(random, 2) ? random.Between(1, 4) : 0;
  options.alignment = int64_t{64} << random.Between(0, 2);
  if (OneIn(random, 4)) options.padding_bytes = random.Between(1, 100);
  if (OneIn(random, 2)) options.max_buffer_bytes = shape.buffer_bytes * random.Between(1, 3);
  if (OneIn(random, 3)) options.preferred_batch = {random.Between(1, 3), random.Between(3, 40)};
  options.says_host = kind == DeviceKind::kCpu && !OneIn(random, 4);
  return options;
}

class FleetMaker {
 public:
  FleetMaker(Random& random, const FleetShape& shape)
      : random_(random), shape_(shape), hosts_(random.Between(1, std::min(4, shape.devices))) {}

  RandomFleet Make() {
    std::vector<Device*> processors = MakeProcessors();
    std::vector<Device*> others;
    while (processors.size() + others.size() < static_cast<size_t>(shape_.devices)) {
      others.push_back(MakeOther(others.size()));
    }
    Shuffle(random_, others);
    fleet_.devices = std::move(others);
    // The first made is the coordinator's, which comes last.
    fleet_.devices.insert(fleet_.devices.end(), processors.rbegin(), processors.rend());
    FakeDeviceOptions elsewhere;
    elsewhere.name = "elsewhere";
    fleet_.elsewhere = std::make_unique<FakeDevice>(std::move(elsewhere));
    return std::move(fleet_);
  }

 private:
  Device* Add(FakeDeviceOptions options) {
    fleet_.owned.push_back(std::make_unique<FakeDevice>(std::move(options)));
    return fleet_.owned.back().get();
  }

  std::vector<Device*> MakeProcessors() {
    FakeDeviceOptions last = RandomDevice(random_, shape_, DeviceKind::kCpu, 0);
    last.name = "local.cpu0";
    std::vector<Device*> processors = {Add(std::move(last))};
    for (int64_t host = 1; host < hosts_; ++host) {
      if (processors.size() == static_cast<size_t>(shape_.devices) || OneIn(random_, 3)) continue;
      FakeDeviceOptions options = RandomDevice(random_, shape_, DeviceKind::kCpu, host);
      options.name = absl::StrCat(HostName(host), ".cpu0");
      if (OneIn(random_, 3)) RefuseSome(random_, options);
      processors.push_back(Add(std::move(options)));
    }
    return processors;
  }

  // A GPU, which may read memory of its host, or an accelerator in the memory of a processor.
  Device* MakeOther(size_t i) {
    const int64_t host = random_.Between(0, hosts_ - 1);
    FakeDeviceOptions options = RandomDevice(random_, shape_, DeviceKind::kGpu, host);
    for (const auto& other : fleet_.owned) {
      if (other->host() != options.host || other->options().shares_memory_of != nullptr) continue;
      const bool processor = other->kind() == DeviceKind::kCpu;
      if (processor && OneIn(random_, 4)) {
        options.kind = OneIn(random_, 4) ? DeviceKind::kGpu : DeviceKind::kAccelerator;
        options.shares_memory_of = other.get();
        break;
      }
      if (OneIn(random_, 5)) options.accepted_buffer_types.push_back(other->buffer_type().name());
    }
    options.name = absl::StrCat(options.host, ".", AbslName(options.kind), i);
    RefuseSome(random_, options);
    return Add(std::move(options));
  }

  static const char* AbslName(DeviceKind kind) {
    return kind == DeviceKind::kAccelerator ? "accel" : "gpu";
  }

  Random& random_;
  const FleetShape& shape_;
  const int64_t hosts_;
  RandomFleet fleet_;
};

// Whether the device runs a tensor's op and all that write into it.
bool RunsAllIn(const Device& device, const Graph& graph, NodeId root) {
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (!graph.Executes(NodeId{i}) || graph.Root(NodeId{i}) != root) continue;
    if (!device.Supports(graph, NodeId{i}).ok()) return false;
  }
  return true;
}

bool HasWriter(const Graph& graph, NodeId id) {
  for (int32_t i = Index(id) + 1; i < graph.size(); ++i) {
    if (graph.Executes(NodeId{i}) && graph.Root(NodeId{i}) == id) return true;
  }
  return false;
}

class InputMaker {
 public:
  InputMaker(Random& random, const Graph& graph, const RandomFleet& fleet)
      : random_(random), graph_(graph), devices_(fleet.devices), elsewhere_(*fleet.elsewhere) {}

  PlanInput Make(bool rules) {
    input_.graph = &graph_;
    input_.devices = devices_;
    input_.leafs.resize(graph_.nodes().size());
    Options(rules);
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (graph_.IsLeaf(NodeId{i})) {
        Place(NodeId{i});
      } else if (graph_.Executes(NodeId{i})) {
        Wish(NodeId{i});
      }
    }
    return std::move(input_);
  }

 private:
  int32_t AnyDevice() {
    const auto last = static_cast<int64_t>(devices_.size()) - 1;
    return static_cast<int32_t>(OneIn(random_, 3) ? last : random_.Between(0, last));
  }

  void Options(bool rules) {
    input_.batch = random_.Between(1, 8);
    PlanOptions& options = input_.options;
    options.op_offload = !OneIn(random_, 3);
    options.offload_batch = OneIn(random_, 3) ? random_.Between(1, 6) : 0;
    options.staged_bytes_limit = random_.Between(64, 2048);
    options.pipeline = OneIn(random_, 2);
    if (OneIn(random_, 4)) {
      input_.batch_ranges.resize(random_.Between(1, static_cast<int64_t>(devices_.size())));
      for (BatchRange& range : input_.batch_ranges) {
        if (OneIn(random_, 2)) range = {random_.Between(1, 5), random_.Between(5, 9)};
      }
    }
    if (OneIn(random_, 2)) options.disabled.Add(Rule::kFuse);
    for (const Rule rule : AllRules()) {
      if (rules && OneIn(random_, 6)) options.disabled.Add(rule);
    }
  }

  void Place(NodeId id) {
    const LeafKind kind = graph_.leaf(id)->kind;
    if (kind == LeafKind::kInput || kind == LeafKind::kPageTable || OneIn(random_, 20)) return;
    int32_t home = AnyDevice();
    if (kind == LeafKind::kCache) {
      while (!RunsAllIn(*devices_[home], graph_, id)) home = AnyDevice();
    }
    const bool weight = kind == LeafKind::kWeight;
    const bool away = weight && OneIn(random_, 30);
    input_.leafs[Index(id)] = {away ? &elsewhere_.buffer_type() : &devices_[home]->buffer_type(),
                               weight ? BufferUsage::kWeights : BufferUsage::kAny};
  }

  void Wish(NodeId id) {
    if (OneIn(random_, 20) && graph_.Root(id) == id) {
      const int32_t d = AnyDevice();
      if (RunsAllIn(*devices_[d], graph_, id)) input_.pins.push_back({id, d});
    }
    // The oracle keeps no values from before a write.
    if (OneIn(random_, 10) && !HasWriter(graph_, id)) input_.options.observed.push_back(id);
  }

  Random& random_;
  const Graph& graph_;
  const std::vector<Device*>& devices_;
  FakeDevice& elsewhere_;
  PlanInput input_;
};

}  // namespace

RandomFleet MakeRandomFleet(Random& random, const FleetShape& shape) {
  return FleetMaker(random, shape).Make();
}

PlanInput MakeRandomInput(Random& random, const Graph& graph, const RandomFleet& fleet,
                          bool rules) {
  return InputMaker(random, graph, fleet).Make(rules);
}

int64_t LargestTensor(const Graph& graph) {
  int64_t most = 0;
  for (const Node& node : graph.nodes()) most = std::max(most, *ByteExtent(node.layout));
  return most;
}

int64_t InputSum(const Graph& graph) {
  int64_t sum = 0;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const LeafAttributes* leaf = graph.leaf(NodeId{i});
    if (leaf != nullptr && leaf->kind == LeafKind::kInput) {
      sum += *ByteExtent(graph.layout(NodeId{i})) + 256;
    }
  }
  return sum;
}

}  // namespace weft
