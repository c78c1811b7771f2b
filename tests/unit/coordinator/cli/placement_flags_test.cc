#include "coordinator/cli/placement_flags.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <string>
#include <vector>

#include "coordinator/cli/arguments.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What a command line means, as a command with placement flags would see it.
absl::StatusOr<PlacementRequest> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "weft");
  CLI::App app;
  PlacementFlags flags;
  AddPlacementFlags(app, flags);
  try {
    app.parse(NormalizeArguments(static_cast<int>(words.size()), words.data()));
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return ParsePlacementFlags(flags);
}

std::vector<std::string> Text(const std::vector<OverrideRule>& rules) {
  std::vector<std::string> texts;
  texts.reserve(rules.size());
  for (const OverrideRule& rule : rules) texts.push_back(rule.pattern + " -> " + rule.device);
  return texts;
}

TEST(NormalizeArguments, OneDashNames_GetTheSecond) {
  const char* words[] = {"weft", "run", "-ngl", "3", "-ngl=4", "-ub", "-u", "-nglx", "--ts", "-m"};
  EXPECT_THAT(NormalizeArguments(10, words),
              ElementsAre("-m", "--ts", "-nglx", "-u", "--ub", "--ngl=4", "3", "--ngl", "run"));
}

TEST(PlacementFlags, Defaults_AreThoseOfTheOptions) {
  ASSERT_OK_AND_ASSIGN(const PlacementRequest request, Parse({}));
  EXPECT_EQ(request.placement.n_gpu_layers, -1);
  EXPECT_EQ(request.placement.main_device, "");
  EXPECT_THAT(request.placement.tensor_split, IsEmpty());
  EXPECT_EQ(request.placement.split_mode, SplitMode::kLayer);
  EXPECT_THAT(request.placement.overrides, IsEmpty());
  EXPECT_FALSE(request.placement.cpu_moe);
  EXPECT_EQ(request.placement.n_cpu_moe, 0);
  EXPECT_TRUE(request.placement.kv_offload);
  EXPECT_TRUE(request.plan.op_offload);
  EXPECT_EQ(request.plan.offload_batch, 0);
  EXPECT_THAT(request.device_batches, IsEmpty());
  EXPECT_FALSE(request.blas);
}

TEST(PlacementFlags, ShortForms) {
  ASSERT_OK_AND_ASSIGN(const PlacementRequest request,
                       Parse({"-ngl", "20", "-mg", "w1.gpu0", "-ts", "3,1", "-sm", "none", "-ot",
                              "exps=cpu", "-ot", "attn=w0.gpu0,ffn=w1.gpu0"}));
  EXPECT_EQ(request.placement.n_gpu_layers, 20);
  EXPECT_EQ(request.placement.main_device, "w1.gpu0");
  EXPECT_THAT(request.placement.tensor_split, ElementsAre(3, 1));
  EXPECT_EQ(request.placement.split_mode, SplitMode::kNone);
  EXPECT_THAT(Text(request.placement.overrides),
              ElementsAre("exps -> cpu", "attn -> w0.gpu0", "ffn -> w1.gpu0"));
}

TEST(PlacementFlags, LongForms) {
  ASSERT_OK_AND_ASSIGN(const PlacementRequest request, Parse({"--gpu-layers",
                                                              "-1",
                                                              "--main-device",
                                                              "1",
                                                              "--tensor-split",
                                                              "0.5/2",
                                                              "--split-mode",
                                                              "tensor",
                                                              "--override-tensor",
                                                              "exps=cpu",
                                                              "--cpu-moe",
                                                              "--n-cpu-moe",
                                                              "4",
                                                              "--no-kv-offload",
                                                              "--no-op-offload",
                                                              "--op-offload-batch",
                                                              "64",
                                                              "--device-batch",
                                                              "w0.gpu0:32-,cpu:-31",
                                                              "--accel",
                                                              "blas"}));
  EXPECT_EQ(request.placement.n_gpu_layers, -1);
  EXPECT_EQ(request.placement.main_device, "1");
  EXPECT_THAT(request.placement.tensor_split, ElementsAre(0.5, 2));
  EXPECT_EQ(request.placement.split_mode, SplitMode::kTensor);
  EXPECT_TRUE(request.placement.cpu_moe);
  EXPECT_EQ(request.placement.n_cpu_moe, 4);
  EXPECT_FALSE(request.placement.kv_offload);
  EXPECT_FALSE(request.plan.op_offload);
  EXPECT_EQ(request.plan.offload_batch, 64);
  EXPECT_THAT(request.device_batches,
              ElementsAre(DeviceBatchRule{"w0.gpu0", {32, std::numeric_limits<int64_t>::max()}},
                          DeviceBatchRule{"cpu", {1, 31}}));
  EXPECT_TRUE(request.blas);
}

TEST(PlacementFlags, Reductions) {
  ASSERT_OK_AND_ASSIGN(const PlacementRequest plain, Parse({}));
  EXPECT_EQ(plain.plan.wire, DType::kF32);
  EXPECT_EQ(plain.plan.all_reduce, AllReducePolicy::kAuto);
  ASSERT_OK_AND_ASSIGN(const PlacementRequest tensor, Parse({"-sm", "tensor", "--wire-type", "bf16",
                                                             "--allreduce", "scatter-gather"}));
  EXPECT_EQ(tensor.plan.wire, DType::kBF16);
  EXPECT_EQ(tensor.plan.all_reduce, AllReducePolicy::kByParts);
  ASSERT_OK_AND_ASSIGN(const PlacementRequest groups, Parse({"--layout", "tp=2,pp=2", "--wire-type",
                                                             "Q8_0", "--allreduce", "doubling"}));
  EXPECT_EQ(groups.plan.wire, DType::kQ8_0);
  EXPECT_EQ(groups.plan.all_reduce, AllReducePolicy::kDoubling);
  EXPECT_OK(Parse({"--wire-type", "f32", "--allreduce", "auto"}));
  EXPECT_OK(Parse({"-sm", "tensor", "--layout", "tp=2"}));
}

TEST(PlacementFlags, EveryNameOfAFlag_MeansTheSame) {
  for (const std::vector<const char*>& words :
       std::vector<std::vector<const char*>>{{"-ngl", "7"},
                                             {"-ngl=7"},
                                             {"--ngl", "7"},
                                             {"--n-gpu-layers", "7"},
                                             {"--gpu-layers=7"}}) {
    ASSERT_OK_AND_ASSIGN(const PlacementRequest request, Parse(words));
    EXPECT_EQ(request.placement.n_gpu_layers, 7);
  }
  ASSERT_OK_AND_ASSIGN(const PlacementRequest all, Parse({"-ngl", "all"}));
  EXPECT_EQ(all.placement.n_gpu_layers, -1);
  for (const char* name : {"-mg", "--main-gpu", "--main-device"}) {
    ASSERT_OK_AND_ASSIGN(const PlacementRequest request, Parse({name, "0"}));
    EXPECT_EQ(request.placement.main_device, "0");
  }
}

TEST(PlacementFlags, BadValues_NameTheFlag) {
  const struct {
    std::vector<const char*> words;
    const char* text;
  } cases[] = {
      {{"-ngl", "many"}, "--n-gpu-layers: 'many'"},
      {{"-ngl", "99999999999999999999"}, "--n-gpu-layers: '99999999999999999999'"},
      {{"-ts", "1,,2"}, "--tensor-split: '' of '1,,2'"},
      {{"-ts", "a"}, "--tensor-split: 'a'"},
      {{"-sm", "row"}, "--split-mode: 'row': want none, layer or tensor"},
      {{"-sm", "layer", "--layout", "tp=2"},
       "--split-mode layer and --layout contradict each other"},
      {{"--layout", "pp=2", "-sm", "none"}, "--split-mode none and --layout contradict each other"},
      {{"-ot", "exps"}, "--override-tensor: 'exps': want REGEX=DEVICE"},
      {{"-ot", "exps=cpu,"}, "--override-tensor: ''"},
      {{"-ot", "=cpu"}, "--override-tensor: '=cpu'"},
      {{"-ot", "exps="}, "--override-tensor: 'exps='"},
      {{"--n-cpu-moe", "-3"}, "--n-cpu-moe: -3"},
      {{"--op-offload-batch", "-1"}, "--op-offload-batch: -1"},
      {{"--device-batch", "cpu"}, "--device-batch: 'cpu'"},
      {{"--accel", "onednn"}, "--accel: 'onednn'"},
      {{"-sm", "tensor", "--wire-type", "f16"}, "--wire-type: 'f16': want f32, bf16 or q8_0"},
      {{"-sm", "tensor", "--wire-type", ""}, "--wire-type: ''"},
      {{"--wire-type", "bf16"}, "--wire-type: nothing is summed"},
      {{"-sm", "none", "--wire-type", "q8_0"}, "--wire-type: nothing is summed"},
      {{"-sm", "tensor", "--allreduce", "ring"}, "--allreduce: 'ring'"},
      {{"--allreduce", "doubling"}, "--allreduce: nothing is summed"},
      {{"--n-cpu-moe", "x"}, "--n-cpu-moe"},
      {{"-ot"}, "--ot"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Parse(c.words), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.text)));
  }
}

// A comma inside brackets of an expression separates nothing; the device is after the last '='.
TEST(ParseOverrides, CommasAndEqualSigns) {
  const struct {
    const char* text;
    std::vector<std::string> rules;
  } cases[] = {
      {R"(blk\.\d{1,2}\.ffn=cpu,x=w0.gpu0)", {R"(blk\.\d{1,2}\.ffn -> cpu)", "x -> w0.gpu0"}},
      {"(?=a,b)=cpu", {"(?=a,b) -> cpu"}},
      {"[,(]=cpu,y=cpu", {"[,(] -> cpu", "y -> cpu"}},
      {R"(\(=cpu,y=cpu)", {R"(\( -> cpu)", "y -> cpu"}},
      {R"([\]),]=cpu,y=cpu)", {R"([\]),] -> cpu)", "y -> cpu"}},
      {"a)=cpu,y=cpu", {"a) -> cpu", "y -> cpu"}},
      {"(a=cpu,y=cpu", {"(a=cpu,y -> cpu"}},  // for the compiler of expressions to refuse
  };
  for (const auto& c : cases) {
    ASSERT_OK_AND_ASSIGN(const std::vector<OverrideRule> rules, ParseOverrides(c.text));
    EXPECT_EQ(Text(rules), c.rules) << c.text;
  }
}

}  // namespace
}  // namespace weft
