// From one machine to the next goes one tensor where layers end there, and none elsewhere (decision
// 10), however the layers lie.
#include <map>

#include "absl/strings/str_cat.h"
#include "common/gguf/gguf_file.h"
#include "coordinator/placement/model_placement.h"
#include "gtest/gtest.h"
#include "tests/golden/plans/plan_cases.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using Crossings = std::map<std::string, int64_t>;  // "w0 -> w1"

struct Fleet {
  const char* name;
  std::vector<RigDevice> devices;
};

std::vector<Fleet> Fleets() {
  return {{"two workers with GPUs", TwoWorkers()},
          {"a worker without GPU first",
           {Gpu("w1.gpu0", "w1"), Cpu("w0.cpu0", "w0"), Cpu("w1.cpu0", "w1"), Cpu("local.cpu0")}},
          {"three workers without GPUs",
           {Cpu("w0.cpu0", "w0"), Cpu("w1.cpu0", "w1"), Cpu("w2.cpu0", "w2"), Cpu("local.cpu0")}},
          {"a GPU here and one on a worker",
           {Gpu("w0.gpu0", "w0"), Gpu("local.gpu0"), Cpu("w0.cpu0", "w0"), Cpu("local.cpu0")}}};
}

struct Flags {
  const char* name;
  PlacementOptions options;
};

std::vector<Flags> Placements() {
  std::vector<Flags> flags(6);
  flags[0].name = "all layers";
  flags[1] = {"--cpu-moe", {}};
  flags[1].options.cpu_moe = true;
  flags[2] = {"half the layers", {}};
  flags[2].options.n_gpu_layers = 2;
  flags[3] = {"half the layers, --cpu-moe", flags[2].options};
  flags[3].options.cpu_moe = true;
  flags[4] = {"--n-cpu-moe 1", {}};
  flags[4].options.n_cpu_moe = 1;
  flags[5] = {"--no-kv-offload", {}};
  flags[5].options.kv_offload = false;
  return flags;
}

std::string Edge(const Device& from, const Device& to) {
  return absl::StrCat(from.host(), " -> ", to.host());
}

Crossings Boundaries(const PlacedDevices& placed) {
  Crossings wanted;
  const Device* before = placed.devices[placed.placement.input_device];
  for (const int32_t d : placed.placement.layer_devices) {
    const Device* device = placed.devices[d];
    if (before->host() != device->host()) ++wanted[Edge(*before, *device)];
    before = device;
  }
  return wanted;
}

Crossings Found(const PlanContext& context, const Plan& plan) {
  Crossings found;
  for (const Replica& replica : plan.replicas) {
    const int32_t from = plan.assignments[Index(replica.source)].device;
    if (replica.kind == ReplicaKind::kInput || context.SameHost(from, replica.device)) continue;
    ++found[Edge(context.device(from), context.device(replica.device))];
  }
  return found;
}

class PlanHandOffTest : public testing::TestWithParam<const char*> {};

TEST_P(PlanHandOffTest, OneTensorPerBoundary) {
  const std::string path = absl::StrCat(TestDataFolder(), "/models/", GetParam(), "/model.gguf");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<GgufFile> file, GgufFile::Open(path));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, Model::Create(*file));
  int64_t boundaries = 0;
  for (const Fleet& fleet : Fleets()) {
    const PlanRig rig(fleet.devices);
    for (const Flags& flags : Placements()) {
      PlacedDevices placed;
      placed.devices = rig.input.devices;
      ASSERT_OK_AND_ASSIGN(placed.placement, PlaceModel(*model, placed.devices, flags.options));
      const Crossings wanted = Boundaries(placed);
      for (const int64_t tokens : {64, 1}) {
        SCOPED_TRACE(absl::StrCat(fleet.name, ", ", flags.name, ", ", tokens, " tokens"));
        const auto check = [&](const PlanPhase&, const PlanContext& context,
                               const ExecutionPlan& plan) {
          EXPECT_EQ(Found(context, plan.plan), wanted);
        };
        ASSERT_OK(PlanOnePhase(*model, placed, {tokens}, {}, check));
      }
      for (const auto& [edge, count] : wanted) boundaries += count;
    }
  }
  EXPECT_GT(boundaries, 20);
}

std::string ModelName(const testing::TestParamInfo<const char*>& parameter) {
  std::string name = parameter.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, PlanHandOffTest,
                         testing::Values("llama-gqa", "qwen2", "qwen3", "qwen3moe", "llama-moe"),
                         ModelName);

}  // namespace
}  // namespace weft
