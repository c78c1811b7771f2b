#include "coordinator/placement/inventory.h"

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/random.h"
#include "common/graph/graph_builder.h"
#include "coordinator/placement/layer_assignment.h"
#include "coordinator/placement/model_placement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_seed.h"
#include "tests/unit/coordinator/placement/placement_rig.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Names(const Inventory& inventory) {
  return absl::StrJoin(inventory.devices(), " ", [](std::string* out, const Device* device) {
    absl::StrAppend(out, device->name(), "@", device->host());
  });
}

Device& Find(const Inventory& inventory, const std::string& name) {
  for (Device* device : inventory.devices()) {
    if (device->name() == name) return *device;
  }
  ADD_FAILURE() << "no device " << name;
  return *inventory.devices().front();
}

constexpr const char* kRack = R"({
  "hosts": [
    {"name": "alpha", "devices": [
      {"kind": "cpu", "memory_bytes": 137438953472, "bandwidth": 8e10},
      {"kind": "gpu", "memory_bytes": 25769803776, "flops": 8e13, "bandwidth": 1e12,
       "ops": {"refuse": ["mul_mat_id"], "refuse_types": ["MXFP4", "q6_K"]},
       "batch": {"min": 8, "max": 4096, "offload": 64}},
      {"kind": "gpu", "memory_bytes": 1.6e10, "layout": "tiled", "reads_host_memory": true}]},
    {"name": "local", "devices": [{"kind": "cpu", "memory_bytes": 8589934592},
                                  {"kind": "accel", "ops": ["mul_mat"]}]},
    {"name": "beta", "devices": [
      {"kind": "gpu"},
      {"kind": "cpu", "batch": {"max": 31}},
      {"kind": "accel"},
      {"kind": "accel", "shares_memory_of": "w1.gpu0"}]}
  ],
  "links": [{"a": "alpha", "b": "beta", "latency_us": 4.5, "bytes_per_s": 1.2e10},
            {"a": "local", "b": "alpha", "latency_us": 90, "bytes_per_s": 125000000}]
})";

TEST(Inventory, Rack_HasDevicesInTheSchedulersOrder) {
  ASSERT_OK_AND_ASSIGN(const Inventory inventory, Inventory::Parse(kRack));
  EXPECT_EQ(Names(inventory),
            "w0.gpu0@alpha w0.gpu1@alpha w1.gpu0@beta local.accel0@local w1.accel0@beta "
            "w1.accel1@beta w0.cpu0@alpha w1.cpu0@beta local.cpu0@local");
  ASSERT_THAT(inventory.speeds(), SizeIs(9));
  EXPECT_EQ(inventory.speeds()[0].flops, 8e13);
  EXPECT_EQ(inventory.speeds()[0].bytes_per_s, 1e12);
  EXPECT_EQ(inventory.speeds()[6].bytes_per_s, 8e10);
  EXPECT_EQ(inventory.speeds()[2].flops, 0);
  ASSERT_THAT(inventory.links(), SizeIs(2));
  EXPECT_EQ(inventory.links()[0].a, "alpha");
  EXPECT_EQ(inventory.links()[0].b, "beta");
  EXPECT_EQ(inventory.links()[0].latency_us, 4.5);
  EXPECT_EQ(inventory.links()[1].bytes_per_s, 125000000);
}

// Hosts are machines of their own where nothing else is said.
TEST(Inventory, Machines_AndHowDevicesRound) {
  ASSERT_OK_AND_ASSIGN(const Inventory inventory, Inventory::Parse(R"({"hosts": [
      {"name": "a", "devices": [{"kind": "cpu", "arithmetic": "avx2"}, {"kind": "cpu"}]},
      {"name": "b", "machine": "a", "devices": [{"kind": "cpu"}]},
      {"name": "c", "machine": "local", "devices": [{"kind": "cpu"}]}]})"));
  EXPECT_EQ(Find(inventory, "w0.cpu0").machine(), "a");
  EXPECT_EQ(Find(inventory, "w1.cpu0").machine(), "a");
  EXPECT_EQ(Find(inventory, "w1.cpu0").host(), "b");
  EXPECT_EQ(Find(inventory, "w2.cpu0").machine(), Find(inventory, "local.cpu0").machine());
  EXPECT_EQ(Find(inventory, "w0.cpu0").arithmetic(), "avx2");
  EXPECT_EQ(Find(inventory, "w0.cpu1").arithmetic(), Find(inventory, "w1.cpu0").arithmetic());
}

TEST(Inventory, Devices_AnswerWhatTheFileSays) {
  ASSERT_OK_AND_ASSIGN(const Inventory inventory, Inventory::Parse(kRack));
  Device& gpu = Find(inventory, "w0.gpu0");
  EXPECT_EQ(gpu.kind(), DeviceKind::kGpu);
  EXPECT_EQ(gpu.memory().free_bytes, 25769803776);
  EXPECT_EQ(gpu.preferred_batch(), (BatchRange{8, 4096}));
  EXPECT_EQ(Find(inventory, "w1.cpu0").preferred_batch(), (BatchRange{1, 31}));
  EXPECT_EQ(Find(inventory, "w1.gpu0").memory().total_bytes, 0);
  EXPECT_EQ(Find(inventory, "w0.gpu1").memory().total_bytes, 16000000000);
  EXPECT_EQ(Find(inventory, "w0.gpu1").buffer_type().layout(), "tiled");
  // Memory: accelerators use their host's CPU's, or what the file says.
  Device& cpu = Find(inventory, "w0.cpu0");
  EXPECT_EQ(&Find(inventory, "local.accel0").buffer_type(),
            &Find(inventory, "local.cpu0").buffer_type());
  EXPECT_EQ(&Find(inventory, "w1.accel0").buffer_type(), &Find(inventory, "w1.cpu0").buffer_type());
  EXPECT_EQ(&Find(inventory, "w1.accel1").buffer_type(), &Find(inventory, "w1.gpu0").buffer_type());
  EXPECT_OK(Find(inventory, "w0.gpu1").Supports(cpu.buffer_type()));
  EXPECT_FALSE(gpu.Supports(cpu.buffer_type()).ok());
}

TEST(Inventory, Ops_AreRefusedWithReason) {
  ASSERT_OK_AND_ASSIGN(const Inventory inventory, Inventory::Parse(kRack));
  GraphBuilder g;
  const NodeId weight = g.Leaf(LeafKind::kWeight, 0, DType::kMXFP4, {64, 8, 1, 1}, "w");
  const NodeId x = g.Leaf(LeafKind::kInput, 0, DType::kF32, {64, 64, 1, 1}, "x");
  const NodeId product = g.MulMat(weight, x);
  const NodeId experts = g.Leaf(LeafKind::kWeight, 1, DType::kF32, {64, 8, 2, 1}, "e");
  const NodeId ids = g.Leaf(LeafKind::kInput, 1, DType::kI32, {1, 64, 1, 1}, "ids");
  const NodeId by_id = g.MulMatId(experts, g.Reshape(x, {64, 1, 64, 1}), ids);
  const NodeId sum = g.Add(x, x);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(g).Finish());
  const Device& gpu = Find(inventory, "w0.gpu0");
  EXPECT_THAT(gpu.Supports(graph, product),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("it has no MXFP4")));
  EXPECT_THAT(gpu.Supports(graph, by_id),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("does not run mul_mat_id")));
  EXPECT_OK(gpu.Supports(graph, sum));
  const Device& accelerator = Find(inventory, "local.accel0");
  EXPECT_OK(accelerator.Supports(graph, product));
  EXPECT_THAT(accelerator.Supports(graph, sum),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("does not run add")));
  EXPECT_OK(Find(inventory, "w1.gpu0").Supports(graph, by_id));
  // Offload: as the file says, else 32 for GPUs and never for CPUs. `product` has 64 columns.
  EXPECT_TRUE(gpu.Wants(graph, product));
  EXPECT_TRUE(Find(inventory, "w1.gpu0").Wants(graph, product));
  EXPECT_FALSE(Find(inventory, "w1.cpu0").Wants(graph, product));
}

TEST(Inventory, CoordinatorsCpu_IsAddedAndLast) {
  ASSERT_OK_AND_ASSIGN(const Inventory empty, Inventory::Parse(R"({"hosts": []})"));
  EXPECT_EQ(Names(empty), "local.cpu0@local");
  EXPECT_EQ(empty.devices()[0]->memory().total_bytes, 0);
  EXPECT_EQ(empty.devices()[0]->kind(), DeviceKind::kCpu);
  ASSERT_OK_AND_ASSIGN(const Inventory more,
                       Inventory::Parse(R"({"hosts": [{"name": "local", "devices": [
          {"kind": "cpu"}, {"kind": "cpu"}, {"kind": "gpu"}]}, {"name": "x", "devices": []}]})"));
  EXPECT_EQ(Names(more), "local.gpu0@local local.cpu1@local local.cpu0@local");
}

TEST(Inventory, FortyDevicesAndLongNames) {
  std::string hosts;
  for (int i = 0; i < 20; ++i) {
    absl::StrAppend(
        &hosts, i == 0 ? "" : ",", R"({"name": ")", std::string(195, 'h'), i,
        R"(", "devices": [{"kind": "gpu", "memory_bytes": 8000000000}, {"kind": "cpu"}]})");
  }
  ASSERT_OK_AND_ASSIGN(const Inventory inventory,
                       Inventory::Parse(absl::StrCat(R"({"hosts": [)", hosts, "]}")));
  ASSERT_THAT(inventory.devices(), SizeIs(41));
  EXPECT_EQ(Find(inventory, "w19.gpu0").host(), std::string(195, 'h') + "19");
  const TestModel model("llama-gqa", 39);
  ASSERT_OK_AND_ASSIGN(const ModelPlacement placement,
                       PlaceModel(*model.model, inventory.devices(), {}));
  EXPECT_EQ(inventory.devices()[placement.layer_devices.back()]->name(), "w19.gpu0");
  EXPECT_THAT(placement.remarks, IsEmpty());
}

std::string OneDevice(const std::string& members) {
  return absl::StrCat(R"({"hosts": [{"name": "a", "devices": []}, {"name": "b", "devices": [{)",
                      members, "}]}]}");
}

struct BadText {
  std::string text;
  std::string error;
};

void ExpectErrors(const std::vector<BadText>& cases) {
  for (const BadText& c : cases) {
    EXPECT_THAT(Inventory::Parse(c.text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.error)))
        << c.text;
  }
}

TEST(Inventory, BadStructure_IsNamedByPath) {
  ExpectErrors({
      {"", "parse error at line 1, column 1"},
      {"{\"hosts\": [}", "parse error at line 1, column 12"},
      {"[]", "want an object"},
      {"{}", "hosts: is missing"},
      {R"({"hosts": {}})", "hosts: want an array"},
      {R"({"hosts": [], "link": []})", "unknown key 'link'; known are hosts, links"},
      {R"({"hosts": [], "hosts": []})", "key 'hosts' stands twice"},
      {R"({"hosts": [3]})", "hosts[0]: want an object"},
      {R"({"hosts": [{"name": "a"}]})", "hosts[0].devices: is missing"},
      {R"({"hosts": [{"devices": []}]})", "hosts[0].name: is missing"},
      {R"({"hosts": [{"name": "", "devices": []}]})", "hosts[0].name: text of 0 bytes"},
      {R"({"hosts": [{"name": "a\nb", "devices": []}]})", "hosts[0].name: 'a\\nb' has control"},
      {absl::StrCat(R"({"hosts": [{"name": ")", std::string(257, 'a'), R"(", "devices": []}]})"),
       "hosts[0].name: text of 257 bytes, want 1 to 256"},
      {R"({"hosts": [{"name": "a", "devices": []}, {"name": "a", "devices": []}]})",
       "hosts[1].name: there are two hosts 'a'"},
      {R"({"hosts": [], "links": [{"a": "local", "b": "c"}]})", "links[0].b: no host 'c'"},
      {R"({"hosts": [], "links": [{"a": "local", "b": "local", "latency_us": 1}]})",
       "links[0].bytes_per_s: is missing"},
      {R"({"hosts": [], "links": [{"a": "local", "b": "local", "latency_us": -1}]})",
       "links[0].latency_us: want a finite number"},
      {R"({"hosts": [], "links": [{"a": "local", "b": "local", "cost": 1}]})",
       "links[0]: unknown key 'cost'"},
  });
}

TEST(Inventory, BadDevices_AreNamedByPath) {
  const std::string device = "hosts[1].devices[0]";
  ExpectErrors({
      {OneDevice(""), device + ".kind: is missing"},
      {OneDevice(R"("kind": "tpu")"), device + ".kind: 'tpu', want gpu, accel or cpu"},
      {OneDevice(R"("kind": 3)"), device + ".kind: want a text"},
      {OneDevice(R"("kind": "gpu", "memory": 3)"), device + ": unknown key 'memory'; known are"},
      {OneDevice(R"("kind": "gpu", "memory_bytes": -1)"), device + ".memory_bytes: -1, want"},
      {OneDevice(R"("kind": "gpu", "memory_bytes": 1.5)"), device + ".memory_bytes: 1.5, want"},
      {OneDevice(R"("kind": "gpu", "memory_bytes": 1e30)"), device + ".memory_bytes: 1e+30, want"},
      {OneDevice(R"("kind": "gpu", "memory_bytes": 18446744073709551615)"),
       device + ".memory_bytes: 18446744073709551615, want"},
      {OneDevice(R"("kind": "gpu", "memory_bytes": 1e999)"), "number overflow"},
      {OneDevice(R"("kind": "gpu", "memory_bytes": "8G")"), device + ".memory_bytes: \"8G\", want"},
      {OneDevice(R"("kind": "gpu", "flops": -3)"), device + ".flops: want a finite number"},
      {OneDevice(R"("kind": "gpu", "bandwidth": true)"), device + ".bandwidth: want a finite"},
      {OneDevice(R"("kind": "gpu", "ops": ["matmul"])"), device + ".ops[0]: 'matmul' is not an op"},
      {OneDevice(R"("kind": "gpu", "ops": ["add", "view"])"),
       device + ".ops[1]: 'view' is not an op"},
      {OneDevice(R"("kind": "gpu", "ops": {"refuse": "add"})"),
       device + ".ops.refuse: want an array"},
      {OneDevice(R"("kind": "gpu", "ops": {"refuse_types": ["F31"]})"),
       device + ".ops.refuse_types[0]: 'F31' is not a tensor type"},
      {OneDevice(R"("kind": "gpu", "ops": {"allow": []})"), device + ".ops: unknown key 'allow'"},
      {OneDevice(R"("kind": "gpu", "batch": {"min": 0})"), device + ".batch.min: 0, want"},
      {OneDevice(R"("kind": "gpu", "batch": {"min": 9, "max": 8})"),
       device + ".batch: min 9 is above max 8"},
      {OneDevice(R"("kind": "gpu", "batch": {"offload": -1})"), device + ".batch.offload: -1"},
      {OneDevice(R"("kind": "gpu", "batch": 32)"), device + ".batch: want an object"},
      {OneDevice(R"("kind": "gpu", "reads_host_memory": 1)"),
       device + ".reads_host_memory: want true or false"},
      {OneDevice(R"("kind": "gpu", "shares_memory_of": "w1.cpu0")"),
       device + ".shares_memory_of: no device 'w1.cpu0' on its host"},
      {OneDevice(R"("kind": "gpu", "shares_memory_of": "local.cpu0")"),
       device + ".shares_memory_of: no device 'local.cpu0' on its host"},
      {OneDevice(R"("kind": "gpu", "shares_memory_of": "w1.gpu0")"),
       device + ".shares_memory_of: w1.gpu0 has no memory of its own"},
      {OneDevice(R"("kind": "accel")"), device + ".shares_memory_of: no device 'w1.cpu0'"},
      {OneDevice(R"("kind": "accel", "layout": "x")"), device + ".layout: its memory is that of"},
  });
}

TEST(Inventory, AbsurdSizes_AreRefused) {
  EXPECT_THAT(Inventory::Parse(std::string(kMaxInventoryBytes + 1, ' ')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the limit is 16777216")));
  EXPECT_THAT(Inventory::Parse(std::string(1000000, '[')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inside each other")));
  std::string devices = R"({"kind": "cpu"})";
  for (int64_t i = 1; i < kMaxInventoryDevices; ++i) devices += R"(,{"kind": "cpu"})";
  const auto two_hosts = [&](const std::string& last) {
    return absl::StrCat(R"({"hosts": [{"name": "a", "devices": [)", devices,
                        R"(]}, {"name": "b", "devices": [)", last, "]}]}");
  };
  ASSERT_OK_AND_ASSIGN(const Inventory most, Inventory::Parse(two_hosts("")));
  ASSERT_OK_AND_ASSIGN(const LayerAssignment layers, AssignLayers(most.devices(), 100, {}));
  EXPECT_THAT(layers.layer_devices, SizeIs(kMaxInventoryDevices));
  EXPECT_THAT(Inventory::Parse(two_hosts(R"({"kind": "cpu"})")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("hosts[1].devices: 1 elements, the limit is 0")));
}

TEST(Inventory, Read_NamesTheFile) {
  const TemporaryFolder folder;
  EXPECT_THAT(Inventory::Read(folder.File("none.json")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.json")));
  const std::string path = folder.File("rack.json");
  std::FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs(R"({"hosts": 3})", file);
  std::fclose(file);
  EXPECT_THAT(Inventory::Read(path), StatusIs(absl::StatusCode::kInvalidArgument,
                                              AllOf(HasSubstr("rack.json: hosts: want an array"))));
}

// Whatever is done to the bytes of a good file, there is an answer, and a good answer has a CPU
// last.
TEST(Inventory, MutatedFiles_NeverBreak) {
  const uint64_t seed = TestSeed(27);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = kRack;
    for (int64_t edits = random.Between(1, 3); edits > 0; --edits) {
      const auto at = static_cast<size_t>(random.Between(0, static_cast<int64_t>(text.size()) - 1));
      switch (random.Between(0, 3)) {
        case 0:
          text[at] = static_cast<char>(random.Between(0, 255));
          break;
        case 1:
          text.erase(at, static_cast<size_t>(random.Between(1, 20)));
          break;
        case 2:
          text.insert(at, text.substr(at, static_cast<size_t>(random.Between(1, 30))));
          break;
        default:
          text[at] = "0123456789{}[]\",:.-e"[random.Between(0, 19)];
      }
      if (text.empty()) text = " ";
    }
    const absl::StatusOr<Inventory> inventory = Inventory::Parse(text);
    if (!inventory.ok()) {
      EXPECT_FALSE(inventory.status().message().empty());
      continue;
    }
    ++accepted;
    EXPECT_EQ(inventory->devices().back()->name(), "local.cpu0");
    EXPECT_OK(AssignLayers(inventory->devices(), 8, {}));
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace weft
