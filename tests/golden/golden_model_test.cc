// The golden models of the supported families, fed in steps of several sizes, on the CPU device
// with every instruction set that runs here and on the fake device: logits within tolerance, greedy
// tokens equal.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/cpu_features.h"
#include "common/cpu/cpu_device.h"
#include "common/gguf/gguf_file.h"
#include "common/program/local_program_host.h"
#include "coordinator/engine/generator.h"
#include "coordinator/engine/model_runner.h"
#include "coordinator/models/model.h"
#include "coordinator/models/model_registry.h"
#include "coordinator/sampling/sampler.h"
#include "gtest/gtest.h"
#include "tests/support/fake_device.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

// Where a model runs: on one device, or cut over two fake accelerators and the scalar CPU.
enum class DeviceChoice {
  kBest,
  kScalar,
  kFake,
  kSplit,    // layers on two accelerators, steps follow each other through both
  kOffload,  // all on the CPU; an accelerator wants batches of 4 tokens and more
  kHostKv,   // layers on accelerators, caches in host memory
  kExperts,  // experts in host memory, used ones are copied; the last layers on an accelerator
};

bool IsCut(DeviceChoice choice) { return choice >= DeviceChoice::kSplit; }

// Which model folder, how many tokens a step, where.
struct GoldenParameter {
  std::string folder;
  int64_t ubatch;
  DeviceChoice device;
};

std::string ParameterName(const testing::TestParamInfo<GoldenParameter>& info) {
  static constexpr const char* kDevices[] = {"best",    "scalar", "fake",   "split",
                                             "offload", "hostkv", "experts"};
  std::string name =
      absl::StrCat(std::filesystem::path(info.param.folder).filename().string(), "_ub",
                   info.param.ubatch, "_", kDevices[static_cast<int>(info.param.device)]);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Folders in tests/data, and those golden models beside the checkout whose architecture is
// supported.
std::vector<std::string> ModelFolders() {
  std::vector<std::string> folders;
  std::vector<std::string> names;
  for (const std::string& root :
       {TestDataFolder() + "/models", TestDataFolder() + "/models/variants",
        GoldenFolder() + "/models"}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
      const std::string name = entry.path().filename().string();
      if (!std::filesystem::exists(entry.path() / "cases.json")) continue;
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const auto file = GgufFile::Open((entry.path() / "model.gguf").string());
      if (!file.ok()) continue;
      const auto architecture = (*file)->metadata().String("general.architecture");
      if (!architecture.ok() || FindArchitecture(*architecture) == nullptr) continue;
      names.push_back(name);
      folders.push_back(entry.path().string());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<GoldenParameter> Parameters() {
  std::vector<GoldenParameter> parameters;
  for (const std::string& folder : ModelFolders()) {
    for (const int64_t ubatch : {1, 7, 16, 33, 512}) {
      parameters.push_back({folder, ubatch, DeviceChoice::kBest});
    }
    parameters.push_back({folder, 33, DeviceChoice::kScalar});
    parameters.push_back({folder, 16, DeviceChoice::kFake});
    for (const DeviceChoice choice : {DeviceChoice::kSplit, DeviceChoice::kOffload,
                                      DeviceChoice::kHostKv, DeviceChoice::kExperts}) {
      parameters.push_back({folder, 7, choice});
    }
  }
  return parameters;
}

std::unique_ptr<Device> MakeCpu(InstructionSet instruction_set) {
  CpuDeviceOptions options;
  options.name = "local.cpu0";
  options.threads = 2;
  options.instruction_set = instruction_set;
  auto device = CpuDevice::Create(options);
  EXPECT_OK(device);
  return device.ok() ? *std::move(device) : nullptr;
}

std::unique_ptr<Device> MakeFake(int i, int64_t offload_batch) {
  FakeDeviceOptions options;
  options.name = absl::StrCat("fake", i);
  options.offload_batch = offload_batch;
  return std::make_unique<FakeDevice>(options);
}

std::vector<std::unique_ptr<Device>> MakeDevices(DeviceChoice choice) {
  std::vector<std::unique_ptr<Device>> devices;
  if (choice == DeviceChoice::kBest || choice == DeviceChoice::kScalar) {
    devices.push_back(
        MakeCpu(choice == DeviceChoice::kBest ? BestInstructionSet() : InstructionSet::kScalar));
    return devices;
  }
  const int64_t offload_batch = choice == DeviceChoice::kFake ? 0 : 4;
  devices.push_back(MakeFake(0, offload_batch));
  if (!IsCut(choice)) return devices;
  if (choice != DeviceChoice::kOffload) devices.push_back(MakeFake(1, offload_batch));
  devices.push_back(MakeCpu(InstructionSet::kScalar));
  return devices;
}

PlacementOptions PlacementOf(DeviceChoice choice, int64_t n_layer) {
  PlacementOptions options;
  if (choice == DeviceChoice::kOffload) options.n_gpu_layers = 0;
  if (choice == DeviceChoice::kHostKv) options.kv_offload = false;
  if (choice == DeviceChoice::kExperts) {
    options.n_gpu_layers = n_layer;  // the first is on the CPU
    options.cpu_moe = true;
  }
  return options;
}

class GoldenModelTest : public testing::TestWithParam<GoldenParameter> {};

TEST_P(GoldenModelTest, LogitsAndGreedyTokensAgree) {
  const GoldenModel golden = ReadGoldenModel(GetParam().folder);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<GgufFile> file, GgufFile::Open(golden.model_path));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, Model::Create(*file));
  const auto owned = MakeDevices(GetParam().device);
  PlacedDevices placed;
  for (const auto& device : owned) {
    ASSERT_NE(device, nullptr);
    placed.devices.push_back(device.get());
  }
  if (placed.devices.size() == 1) {
    placed = PlaceOnOneDevice(*model, *placed.devices[0]);
  } else {
    const int64_t n_layer = model->hyperparameters().n_layer;
    ASSERT_OK_AND_ASSIGN(placed.placement, PlaceModel(*model, placed.devices,
                                                      PlacementOf(GetParam().device, n_layer)));
  }
  LocalProgramHostOptions host_options;
  host_options.devices = placed.devices;
  ASSERT_OK_AND_ASSIGN(const auto host, LocalProgramHost::Create(host_options));
  const SystemClock clock;
  RunnerOptions options;
  options.context = golden.context;
  options.ubatch = GetParam().ubatch;
  options.key_type = DType::kF32;
  options.value_type = DType::kF32;
  options.reserve_outputs = options.ubatch;
  options.forbid_replans = true;
  ASSERT_OK_AND_ASSIGN(const auto runner,
                       ModelRunner::Create(*model, placed, *host, clock, options));
  for (const GoldenCase& c : golden.cases) {
    SCOPED_TRACE(c.name);
    runner->Truncate(0, 0);
    ASSERT_OK_AND_ASSIGN(const std::vector<float> logits, Prefill(*runner, c.tokens, 0, true));
    EXPECT_LE(NormalizedError(logits, c.exact), golden.tol_exact);
    EXPECT_LE(NormalizedError(logits, c.logits), golden.tol_nmse);
    GenerateCallbacks callbacks;
    callbacks.choose = [](absl::Span<const float> row) -> absl::StatusOr<int32_t> {
      return ArgMax(row);
    };
    ASSERT_OK_AND_ASSIGN(
        const GenerateResult result,
        Generate(*runner, clock, c.tokens, static_cast<int64_t>(c.greedy.size()), callbacks));
    EXPECT_EQ(CompareGreedy(result.tokens, c.greedy, c.margins, golden.greedy_margin), "");
  }
  EXPECT_EQ(runner->counters().replans, 0) << runner->counters().replan_reason;
  if (GetParam().device == DeviceChoice::kSplit) {
    EXPECT_EQ(runner->max_in_flight(), kMaxStepsInFlight);
    EXPECT_GT(host->counters().overlapped, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenModelTest, testing::ValuesIn(Parameters()), ParameterName);

}  // namespace
}  // namespace weft
