#include "coordinator/placement/layer_assignment.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"
#include "tests/unit/coordinator/placement/placement_rig.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

PlacementOptions Layers(int64_t n_gpu_layers, std::vector<double> split = {}) {
  PlacementOptions options;
  options.n_gpu_layers = n_gpu_layers;
  options.tensor_split = std::move(split);
  return options;
}

// "2*w0.gpu0 1*w1.gpu0": the devices of the layers, in runs; the last is that of the output layer.
std::string Runs(const NullDevices& devices, const std::vector<int32_t>& layers) {
  std::string text;
  for (size_t first = 0; first < layers.size();) {
    size_t end = first;
    while (end < layers.size() && layers[end] == layers[first]) ++end;
    absl::StrAppend(&text, text.empty() ? "" : " ", end - first, "*",
                    devices.list()[layers[first]]->name());
    first = end;
  }
  return text;
}

struct Case {
  const char* what;
  std::vector<std::string> devices;
  PlacementOptions options;
  const char* layers;  // of 8 layers and the output layer
  const char* input;
};

const std::vector<std::string> kTwoWorkers = {"w0.gpu0:8", "w1.gpu0:8", "w0.cpu0:64", "w1.cpu0:64",
                                              "local.cpu0:16"};

std::vector<Case> CountingCases() {
  return {
      {"one CPU", {"local.cpu0:8"}, Layers(-1), "9*local.cpu0", "local.cpu0"},
      {"one CPU, no layers", {"local.cpu0:8"}, Layers(0), "9*local.cpu0", "local.cpu0"},
      {"one GPU", {"local.gpu0:8", "local.cpu0:8"}, Layers(-1), "9*local.gpu0", "local.cpu0"},
      {"everything by number",
       {"local.gpu0:8", "local.cpu0:8"},
       Layers(9),
       "9*local.gpu0",
       "local.cpu0"},
      {"more than there is",
       {"local.gpu0:8", "local.cpu0:8"},
       Layers(1000),
       "9*local.gpu0",
       "local.cpu0"},
      {"all but the first layer",
       {"local.gpu0:8", "local.cpu0:8"},
       Layers(8),
       "1*local.cpu0 8*local.gpu0",
       "local.cpu0"},
      {"the output layer is the first to go",
       {"local.gpu0:8", "local.cpu0:8"},
       Layers(1),
       "8*local.cpu0 1*local.gpu0",
       "local.cpu0"},
      {"none", {"local.gpu0:8", "local.cpu0:8"}, Layers(0), "9*local.cpu0", "local.cpu0"},
      {"two GPUs, cut in the middle", kTwoWorkers, Layers(-1), "5*w0.gpu0 4*w1.gpu0", "w0.cpu0"},
      {"two GPUs, four layers", kTwoWorkers, Layers(4), "5*w0.cpu0 2*w0.gpu0 2*w1.gpu0", "w0.cpu0"},
      {"two workers, no layers: not on the coordinator", kTwoWorkers, Layers(0), "9*w0.cpu0",
       "w0.cpu0"},
      {"shares", kTwoWorkers, Layers(-1, {1, 2}), "3*w0.gpu0 6*w1.gpu0", "w0.cpu0"},
      {"shares are relative", kTwoWorkers, Layers(-1, {1e300, 2e300}), "3*w0.gpu0 6*w1.gpu0",
       "w0.cpu0"},
      {"missing shares are 0", kTwoWorkers, Layers(-1, {1}), "9*w0.gpu0", "w0.cpu0"},
      {"no share for the first", kTwoWorkers, Layers(4, {0, 3}), "5*w1.cpu0 4*w1.gpu0", "w1.cpu0"},
      {"no share for the first, no layers", kTwoWorkers, Layers(0, {0, 3}), "9*w1.cpu0", "w1.cpu0"},
  };
}

std::vector<Case> DeviceCases() {
  PlacementOptions one;
  one.split_mode = SplitMode::kNone;
  PlacementOptions by_name = one;
  by_name.main_device = "w1.gpu0";
  PlacementOptions by_number = one;
  by_number.main_device = "1";
  PlacementOptions cpu = one;
  cpu.main_device = "w1.cpu0";
  cpu.n_gpu_layers = 2;
  return {
      {"by memory",
       {"w0.gpu0:8", "w1.gpu0:16", "w0.cpu0:64", "w1.cpu0:64", "local.cpu0:16"},
       Layers(-1),
       "3*w0.gpu0 6*w1.gpu0",
       "w0.cpu0"},
      {"a GPU of unknown memory counts with its host",
       {"w0.gpu0", "w1.gpu0:32", "w0.cpu0:64", "w1.cpu0:64", "local.cpu0:16"},
       Layers(-1),
       "6*w0.gpu0 3*w1.gpu0",
       "w0.cpu0"},
      {"nothing is known",
       {"w0.gpu0", "w1.gpu0:32", "w0.cpu0", "w1.cpu0", "local.cpu0"},
       Layers(-1),
       "5*w0.gpu0 4*w1.gpu0",
       "w0.cpu0"},
      {"workers without GPUs",
       {"w0.cpu0:8", "w1.cpu0:8", "w2.cpu0:8", "local.cpu0:64"},
       Layers(-1),
       "3*w0.cpu0 3*w1.cpu0 3*w2.cpu0",
       "w0.cpu0"},
      {"a worker with two CPUs",
       {"w0.cpu0:8", "w0.cpu1:8", "local.cpu0:64"},
       Layers(6),
       "6*w0.cpu0 3*w0.cpu1",
       "w0.cpu0"},
      {"a worker's CPU beside its GPU holds no layers",
       {"w0.gpu0:8", "w0.cpu0:64", "w1.cpu0:8", "local.cpu0:64"},
       Layers(-1),
       "5*w0.gpu0 4*w1.cpu0",
       "w0.cpu0"},
      {"accelerators hold nothing",
       {"w0.blas0:8", "w0.cpu0:8", "local.blas0:8", "local.cpu0:64"},
       Layers(-1),
       "9*w0.cpu0",
       "w0.cpu0"},
      {"accelerator alone",
       {"local.blas0:8", "local.cpu0:8"},
       Layers(-1),
       "9*local.cpu0",
       "local.cpu0"},
      {"a host that lists no CPU",
       {"w0.gpu0:8", "local.cpu0:8"},
       Layers(8),
       "1*local.cpu0 8*w0.gpu0",
       "local.cpu0"},
      {"a meta device",
       {"w0.meta0:8", "w0.cpu0:8", "local.cpu0:8"},
       Layers(-1),
       "9*w0.meta0",
       "w0.cpu0"},
      {"main device: the first", kTwoWorkers, one, "9*w0.gpu0", "w0.cpu0"},
      {"main device by name", kTwoWorkers, by_name, "9*w1.gpu0", "w1.cpu0"},
      {"main device by number", kTwoWorkers, by_number, "9*w1.gpu0", "w1.cpu0"},
      {"a CPU as the main device", kTwoWorkers, cpu, "9*w1.cpu0", "w1.cpu0"},
  };
}

class LayerAssignmentTest : public ::testing::TestWithParam<Case> {};

TEST_P(LayerAssignmentTest, LayersAreWhereTheRulesSay) {
  const Case& c = GetParam();
  SCOPED_TRACE(c.what);
  const NullDevices devices(c.devices);
  ASSERT_OK_AND_ASSIGN(const LayerAssignment result, AssignLayers(devices.list(), 8, c.options));
  EXPECT_EQ(Runs(devices, result.layers), c.layers);
  EXPECT_EQ(devices.list()[result.input_device]->name(), c.input);
  EXPECT_THAT(result.remarks, IsEmpty());
}
INSTANTIATE_TEST_SUITE_P(Counting, LayerAssignmentTest, testing::ValuesIn(CountingCases()));
INSTANTIATE_TEST_SUITE_P(Devices, LayerAssignmentTest, testing::ValuesIn(DeviceCases()));

TEST(AssignLayers, TensorSplit_OfAsManyEntriesAsDevices_IsFineAndOneMoreIsNot) {
  const NullDevices devices(WorkerGpus(40));
  ASSERT_OK_AND_ASSIGN(const LayerAssignment result,
                       AssignLayers(devices.list(), 80, Layers(-1, std::vector<double>(40, 0.1))));
  EXPECT_EQ(result.layers.front(), 0);
  EXPECT_EQ(result.layers.back(), 39);
  EXPECT_THAT(AssignLayers(devices.list(), 80, Layers(-1, std::vector<double>(41, 0.1))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--tensor-split: 41 shares for 40 devices"),
                             HasSubstr("w0.gpu0, w1.gpu0"))));
}

TEST(AssignLayers, BadOptions_AreErrorsThatNameTheFlag) {
  struct Bad {
    PlacementOptions options;
    absl::StatusCode code;
    const char* text;
  };
  PlacementOptions unknown;
  unknown.main_device = "w7.gpu0";
  PlacementOptions beyond;
  beyond.main_device = "2";
  PlacementOptions negative;
  negative.main_device = "-1";
  PlacementOptions accelerator;
  accelerator.main_device = "w0.blas0";
  const absl::StatusCode invalid = absl::StatusCode::kInvalidArgument;
  const Bad cases[] = {
      {Layers(-1, {1, -1}), invalid, "--tensor-split: share -1"},
      {Layers(-1, {kInfinity}), invalid, "--tensor-split: share inf"},
      {Layers(-1, {std::numeric_limits<double>::quiet_NaN()}), invalid,
       "--tensor-split: share nan"},
      {Layers(-1, {0, 0}), invalid, "--tensor-split: all shares are 0"},
      {unknown, invalid, "--main-device: no device 'w7.gpu0'; layers can be on: w0.gpu0, w1.gpu0"},
      {beyond, invalid, "--main-device: no device '2'"},
      {negative, invalid, "--main-device: no device '-1'"},
      {accelerator, invalid, "w0.blas0 computes in its host's memory"},
  };
  const NullDevices devices(
      {"w0.gpu0:8", "w1.gpu0:8", "w0.blas0", "w0.cpu0", "w1.cpu0", "local.cpu0"});
  for (const Bad& bad : cases) {
    EXPECT_THAT(AssignLayers(devices.list(), 8, bad.options),
                StatusIs(bad.code, HasSubstr(bad.text)));
  }
}

TEST(HostCpus, AreTheLastOfTheMachine) {
  const NullDevices devices(
      {"w0.gpu0:8", "w1.gpu0:8", "w0.blas0", "w0.cpu0", "w0.cpu1", "local.cpu0"});
  EXPECT_THAT(HostCpus(devices.list()), ElementsAre(4, 5, 4, 3, 4, 5));
}

TEST(AssignLayers, OptionsWithoutEffect_AreRemarked) {
  const NullDevices devices(kTwoWorkers);
  PlacementOptions options = Layers(-1, {1, 1});
  options.split_mode = SplitMode::kNone;
  ASSERT_OK_AND_ASSIGN(const LayerAssignment none, AssignLayers(devices.list(), 8, options));
  EXPECT_THAT(Texts(none.remarks), ElementsAre(HasSubstr("--tensor-split has no effect")));
  options = Layers(-1);
  options.main_device = "1";
  ASSERT_OK_AND_ASSIGN(const LayerAssignment layer, AssignLayers(devices.list(), 8, options));
  EXPECT_THAT(Texts(layer.remarks), ElementsAre(HasSubstr("--main-device has no effect")));
}

// Of any shares: layers are on devices with a share, in order, and each device gets its share to
// within one layer.
TEST(AssignLayers, RandomShares_GiveEveryDeviceItsShare) {
  const uint64_t seed = TestSeed(3);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    const int64_t count = random.Between(1, 12);
    std::vector<std::string> specs;
    std::vector<double> split;
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      specs.push_back(absl::StrCat("w", i, ".gpu0:8"));
      split.push_back(random.Between(0, 3) == 0 ? 0 : static_cast<double>(random.Between(1, 100)));
      sum += split.back();
    }
    specs.emplace_back("local.cpu0:8");
    if (sum == 0) continue;
    const NullDevices devices(specs);
    const int64_t layers = random.Between(1, 100);
    ASSERT_OK_AND_ASSIGN(const LayerAssignment result,
                         AssignLayers(devices.list(), layers, Layers(-1, split)));
    std::vector<double> got(count, 0);
    for (size_t i = 0; i < result.layers.size(); ++i) {
      EXPECT_GE(result.layers[i], result.layers[i == 0 ? 0 : i - 1]);
      got[result.layers[i]] += 1;
    }
    for (int64_t i = 0; i < count; ++i) {
      const double want = split[i] / sum * static_cast<double>(layers + 1);
      EXPECT_LE(std::abs(got[i] - want), 1.0) << "device " << i << " of " << count;
      EXPECT_TRUE(split[i] > 0 || got[i] == 0);
    }
  }
}

}  // namespace
}  // namespace weft
