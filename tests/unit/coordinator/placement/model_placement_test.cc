#include "coordinator/placement/model_placement.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/placement/placement_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/placement/placement_rig.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const std::vector<std::string> kTwoWorkers = {"w0.gpu0:8", "w1.gpu0:8", "w0.cpu0:64", "w1.cpu0:64",
                                              "local.cpu0:16"};

// A placement with its model and devices, asked by name.
struct Placed {
  const TestModel& model;
  const NullDevices& devices;
  ModelPlacement placement;

  int32_t Id(const std::string& name) const {
    const int32_t id = model.model->weight_table().Find(name);
    EXPECT_GE(id, 0) << name;
    return id < 0 ? 0 : id;
  }
  // "w0.gpu0: layer 1 of 4 on w0.gpu0 (-ngl all)".
  std::string Of(const std::string& name) const {
    const int32_t id = Id(name);
    return absl::StrCat(devices.list()[placement.weights[id]]->name(), ": ",
                        placement.weight_reasons[id]);
  }
  std::string Text() const { return PlacementText(placement, *model.model, devices.list()); }
};

Placed Place(const TestModel& model, const NullDevices& devices, const PlacementOptions& options) {
  absl::StatusOr<ModelPlacement> placement = PlaceModel(*model.model, devices.list(), options);
  EXPECT_OK(placement);
  return {model, devices, placement.ok() ? *std::move(placement) : ModelPlacement()};
}

PlacementOptions Rules(std::vector<OverrideRule> overrides) {
  PlacementOptions options;
  options.overrides = std::move(overrides);
  return options;
}

Support NoMxfp4(const Graph& graph, NodeId id) {
  for (const NodeId source : graph.node(id).sources) {
    if (graph.layout(source).dtype == DType::kMXFP4) {
      return absl::UnimplementedError("no kernel for MXFP4");
    }
  }
  return absl::OkStatus();
}

TEST(PlaceModel, Reasons_SayWhichLayerWhereAndWhy) {
  const TestModel model("llama-moe", 4);
  const NullDevices devices(kTwoWorkers);
  PlacementOptions options;
  options.n_gpu_layers = 3;
  const Placed placed = Place(model, devices, options);
  EXPECT_EQ(placed.Of("token_embd.weight"),
            "w0.cpu0: input layer on w0.cpu0, on the host of the first layer");
  EXPECT_EQ(placed.Of("blk.1.attn_q.weight"),
            "w0.cpu0: layer 1 of 4 on w0.cpu0 (left to the host by -ngl 3)");
  EXPECT_EQ(placed.Of("blk.2.attn_norm.weight"), "w0.gpu0: layer 2 of 4 on w0.gpu0 (-ngl 3)");
  EXPECT_EQ(placed.Of("output.weight"), "w1.gpu0: output layer on w1.gpu0 (-ngl 3)");
  EXPECT_EQ(placed.Of("output_norm.weight"), "w1.gpu0: output layer on w1.gpu0 (-ngl 3)");
  EXPECT_THAT(placed.placement.layer_devices, ElementsAre(2, 2, 0, 0, 1));
  EXPECT_THAT(placed.placement.caches, ElementsAre(2, 2, 2, 2, 0, 0, 0, 0));
  EXPECT_EQ(placed.placement.cache_reasons[4], "with layer 2");
  EXPECT_THAT(placed.placement.attention_pins, ElementsAre(2, 2, -1, -1));
  EXPECT_THAT(placed.placement.remarks, IsEmpty());

  options.split_mode = SplitMode::kNone;
  options.n_gpu_layers = -1;
  EXPECT_EQ(Place(model, devices, options).Of("blk.3.attn_q.weight"),
            "w0.gpu0: layer 3 of 4 on w0.gpu0 (-sm none -ngl all)");
}

TEST(PlaceModel, Overrides_FirstThatMatchesWins) {
  const TestModel model("llama-moe", 4);
  const NullDevices devices(kTwoWorkers);
  const Placed placed = Place(
      model, devices,
      Rules({{R"(blk\.0\.ffn_.*exps)", "w1.gpu0"}, {"exps", "cpu"}, {"token_embd", "w1.gpu0"}}));
  EXPECT_EQ(placed.Of("blk.0.ffn_up_exps.weight"), R"(w1.gpu0: -ot 'blk\.0\.ffn_.*exps=w1.gpu0')");
  // "cpu" is that of the layer's own host.
  EXPECT_EQ(placed.Of("blk.1.ffn_up_exps.weight"), "w0.cpu0: -ot 'exps=cpu'");
  EXPECT_EQ(placed.Of("blk.3.ffn_down_exps.weight"), "w1.cpu0: -ot 'exps=cpu'");
  EXPECT_EQ(placed.Of("token_embd.weight"), "w1.gpu0: -ot 'token_embd=w1.gpu0'");
  EXPECT_EQ(placed.placement.input_device, devices.Find("w0.cpu0"));
  EXPECT_EQ(placed.Of("blk.1.attn_q.weight"), "w0.gpu0: layer 1 of 4 on w0.gpu0 (-ngl all)");
  EXPECT_THAT(placed.placement.remarks, IsEmpty());
}

TEST(PlaceModel, OverridesWithoutEffect_AreRemarked) {
  const TestModel model("llama-moe", 2);
  const NullDevices devices(kTwoWorkers);
  const Placed placed = Place(
      model, devices,
      Rules(
          {{"exps", "cpu"}, {"ffn_up_exps", "w1.gpu0"}, {"experts", "cpu"}, {"norm", "w0.gpu0"}}));
  EXPECT_THAT(Texts(placed.placement.remarks),
              ElementsAre("-ot 'ffn_up_exps=w1.gpu0' matches only weights that earlier rules take",
                          "-ot 'experts=cpu' matches no weight"));
}

TEST(PlaceModel, BadRules_AreErrorsThatNameThem) {
  const TestModel model("llama-moe", 2);
  const NullDevices devices({"w0.gpu0:8", "w0.blas0", "w0.cpu0:8", "local.cpu0:8"});
  const struct {
    OverrideRule rule;
    const char* text;
  } cases[] = {
      {{"exps", "w1.gpu0"},
       "-ot 'exps=w1.gpu0': no device 'w1.gpu0'; there are: cpu, w0.gpu0, w0.blas0, w0.cpu0, "
       "local.cpu0"},
      {{"exps", ""}, "no device ''"},
      {{"exps", "w0.blas0"}, "w0.blas0 computes in its host's memory"},
      {{"(exps", "cpu"}, "-ot '(exps=cpu': regular expression '(exps' at 5"},
      {{"", "cpu"}, "a pattern of 0 bytes"},
      {{std::string(5000, 'a'), "cpu"}, "a pattern of 5000 bytes"},
      {{"^((([a-z_.]+)+)+)+[#@]", "cpu"}, "match limit exceeded"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(PlaceModel(*model.model, devices.list(), Rules({c.rule})),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.text)));
  }
  EXPECT_THAT(PlaceModel(*model.model, devices.list(),
                         Rules(std::vector<OverrideRule>(5000, {"a", "cpu"}))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("5000 rules")));
}

TEST(PlaceModel, CpuMoe_TakesExpertsByRoleToTheHost) {
  const TestModel model("llama-moe", 4);
  const NullDevices devices(kTwoWorkers);
  PlacementOptions options;
  options.cpu_moe = true;
  const Placed all = Place(model, devices, options);
  EXPECT_EQ(all.Of("blk.0.ffn_gate_exps.weight"), "w0.cpu0: --cpu-moe");
  EXPECT_EQ(all.Of("blk.3.ffn_down_exps.weight"), "w1.cpu0: --cpu-moe");
  EXPECT_EQ(all.Of("blk.3.ffn_gate_inp.weight"), "w1.gpu0: layer 3 of 4 on w1.gpu0 (-ngl all)");

  options.cpu_moe = false;
  options.n_cpu_moe = 2;
  options.overrides = {{"ffn_up_exps", "w1.gpu0"}};
  const Placed some = Place(model, devices, options);
  EXPECT_EQ(some.Of("blk.1.ffn_gate_exps.weight"), "w0.cpu0: --n-cpu-moe 2");
  EXPECT_EQ(some.Of("blk.1.ffn_up_exps.weight"), "w1.gpu0: -ot 'ffn_up_exps=w1.gpu0'");
  EXPECT_EQ(some.Of("blk.2.ffn_gate_exps.weight"), "w0.gpu0: layer 2 of 4 on w0.gpu0 (-ngl all)");
  EXPECT_THAT(some.placement.remarks, IsEmpty());

  options.n_cpu_moe = 1000;
  EXPECT_EQ(Place(model, devices, options).Of("blk.3.ffn_gate_exps.weight"),
            "w1.cpu0: --n-cpu-moe 1000");
  options.n_cpu_moe = -1;
  EXPECT_THAT(PlaceModel(*model.model, devices.list(), options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--n-cpu-moe: -1")));
}

TEST(PlaceModel, CpuMoeOfADenseModel_IsRemarked) {
  const TestModel model("llama-gqa", 2);
  const NullDevices devices(kTwoWorkers);
  PlacementOptions options;
  options.n_cpu_moe = 3;
  EXPECT_THAT(Texts(Place(model, devices, options).placement.remarks),
              ElementsAre("--n-cpu-moe: the model has no experts"));
  options.cpu_moe = true;
  EXPECT_THAT(Texts(Place(model, devices, options).placement.remarks),
              ElementsAre("--cpu-moe: the model has no experts"));
}

TEST(PlaceModel, NoKvOffload_PutsCachesAndAttentionOnTheHost) {
  const TestModel model("llama-gqa", 4);
  const NullDevices devices(kTwoWorkers);
  PlacementOptions options;
  options.kv_offload = false;
  const Placed placed = Place(model, devices, options);
  EXPECT_THAT(placed.placement.caches, ElementsAre(2, 2, 2, 2, 2, 2, 3, 3));
  EXPECT_EQ(placed.placement.cache_reasons[0], "--no-kv-offload");
  EXPECT_THAT(placed.placement.attention_pins, ElementsAre(2, 2, 2, 3));
  EXPECT_THAT(Texts(placed.placement.remarks),
              ElementsAre(HasSubstr("the caches of 4 of 4 layers")));

  const NullDevices cpu({"local.cpu0:8"});
  const Placed alone = Place(model, cpu, options);
  EXPECT_THAT(alone.placement.attention_pins, ElementsAre(-1, -1, -1, -1));
  EXPECT_THAT(alone.placement.remarks, IsEmpty());
}

// The CPU holds the caches of the layers that it got; the GPU beside it would be sent a copy.
TEST(PlaceModel, CachesOfHostLayers_KeepTheirAttention) {
  const TestModel model("llama-gqa", 4);
  PlacementOptions options;
  options.n_gpu_layers = 2;
  const NullDevices devices({"local.gpu0:8", "local.blas0", "local.cpu0:8"});
  const Placed placed = Place(model, devices, options);
  EXPECT_THAT(placed.placement.layer_devices, ElementsAre(2, 2, 2, 0, 0));
  EXPECT_THAT(placed.placement.attention_pins, ElementsAre(2, 2, 2, -1));
  EXPECT_THAT(placed.placement.remarks, IsEmpty());
  EXPECT_THAT(placed.Text(), Not(HasSubstr("attention of layer")));
}

TEST(PlaceModel, GpuThatReadsHostMemory_MayComputeAttention) {
  const TestModel model("llama-gqa", 4);
  PlacementOptions options;
  options.n_gpu_layers = 0;
  NullDevices devices({"local.gpu0:8", "local.cpu0:8"});
  devices.Change("local.gpu0", [](NullDeviceOptions& gpu) { gpu.reads_host_memory = true; });
  EXPECT_THAT(Place(model, devices, options).placement.attention_pins, ElementsAre(-1, -1, -1, -1));
}

TEST(PlaceModel, RefusedCaches_GoToTheHostWithOneRemark) {
  const TestModel model("llama-gqa", 4);
  NullDevices devices(kTwoWorkers);
  const auto refuse = [&](Op op, DType pages) {
    devices.Refuse("w0.gpu0", [op, pages](const Graph& graph, NodeId id) -> Support {
      const Node& node = graph.node(id);
      const size_t source = node.op == Op::kPagedAttention ? 1 : 0;
      if (node.op != op || graph.layout(node.sources[source]).dtype != pages) {
        return absl::OkStatus();
      }
      return absl::UnimplementedError("no such kernel");
    });
  };
  for (const Op op : {Op::kKvStore, Op::kPagedAttention}) {
    refuse(op, DType::kF16);
    const Placed placed = Place(model, devices, {});
    EXPECT_THAT(placed.placement.layer_devices, ElementsAre(0, 0, 0, 1, 1));
    EXPECT_THAT(placed.placement.caches, ElementsAre(2, 2, 2, 2, 2, 2, 1, 1));
    EXPECT_EQ(placed.placement.cache_reasons[0], "w0.gpu0 refuses the cache: no such kernel");
    EXPECT_THAT(placed.placement.attention_pins, ElementsAre(2, 2, 2, -1));
    EXPECT_THAT(
        Texts(placed.placement.remarks),
        ElementsAre("w0.gpu0 refuses the cache: no such kernel; the caches of 3 of 4 layers "
                    "lie in host memory, and their attention runs on the host's CPU"));
    EXPECT_EQ(placed.placement.remarks[0].kind, PlacementRemarkKind::kRefusedCaches);
    EXPECT_THAT(placed.Text(), HasSubstr("attention of layer 2: w0.cpu0"));
  }
  // Asked with the types that the caches have; keys refused take the values with them.
  refuse(Op::kKvStore, DType::kF32);
  EXPECT_THAT(Place(model, devices, {}).placement.remarks, IsEmpty());
  PlacementOptions wide;
  wide.key_type = DType::kF32;
  EXPECT_THAT(Place(model, devices, wide).placement.caches, ElementsAre(2, 2, 2, 2, 2, 2, 1, 1));
  // A type whose blocks do not fit the heads is refused elsewhere, in its own words.
  wide.key_type = DType::kQ8_0;
  EXPECT_THAT(Place(model, devices, wide).placement.caches, SizeIs(8));
}

TEST(PlaceModel, RefusedWeights_GoToTheHostWithOneRemark) {
  const TestModel model("llama-moe", 3, [](EditableGguf& gguf) {
    for (const char* name : {"blk.1.ffn_down_exps.weight", "blk.2.ffn_down_exps.weight"}) {
      gguf.Remove(name);
      gguf.AddZeros(name, DType::kMXFP4, {96, 48, 5, 1});
    }
  });
  NullDevices devices({"w0.gpu0:8", "w0.cpu0:64", "local.cpu0:16"});
  devices.Refuse("w0.gpu0", NoMxfp4);
  const Placed placed = Place(model, devices, Rules({{"blk.2.*down_exps", "w0.gpu0"}}));
  EXPECT_EQ(placed.Of("blk.0.ffn_down_exps.weight"), "w0.gpu0: layer 0 of 3 on w0.gpu0 (-ngl all)");
  EXPECT_EQ(placed.Of("blk.1.ffn_down_exps.weight"),
            "w0.cpu0: w0.gpu0 refuses MXFP4: no kernel for MXFP4");
  // What a rule asks for is refused too.
  EXPECT_EQ(placed.Of("blk.2.ffn_down_exps.weight"),
            "w0.cpu0: w0.gpu0 refuses MXFP4: no kernel for MXFP4");
  EXPECT_THAT(Texts(placed.placement.remarks),
              ElementsAre("w0.gpu0 refuses MXFP4: no kernel for MXFP4; 2 weights (0.0 MiB) are on "
                          "w0.cpu0 instead"));
}

// The two uses of a tied matrix lie at the two ends, and every layer has its rope factors near.
TEST(PlaceModel, SharedTensors_LieWhereTheirUsesAre) {
  const TestModel model("llama3-rope", 4);
  const NullDevices devices(kTwoWorkers);
  const Placed placed = Place(model, devices, {});
  EXPECT_EQ(placed.Of("token_embd.weight"),
            "w0.cpu0: input layer on w0.cpu0, on the host of the first layer");
  EXPECT_EQ(placed.Of("output.weight"), "w1.gpu0: output layer on w1.gpu0 (-ngl all)");
  EXPECT_EQ(placed.Of("blk.2.rope_freqs.weight"), "w0.gpu0: layer 2 of 4 on w0.gpu0 (-ngl all)");
  EXPECT_EQ(placed.Of("blk.3.rope_freqs.weight"), "w1.gpu0: layer 3 of 4 on w1.gpu0 (-ngl all)");
  // On one device each tensor counts once.
  int64_t file_bytes = 0;
  for (const GgufTensor& tensor : model.file->tensors()) file_bytes += tensor.bytes;
  const NullDevices cpu({"local.cpu0:8"});
  EXPECT_THAT(WeightBytesByDevice(*model.model, Place(model, cpu, {}).placement.weights, 1),
              ElementsAre(file_bytes));
}

TEST(PlaceModel, BadDeviceLists_AreErrors) {
  const TestModel model("llama-gqa", 2);
  EXPECT_THAT(PlaceModel(*model.model, {}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must be a CPU")));
  const NullDevices devices({"w0.gpu0:8"});
  EXPECT_THAT(PlaceModel(*model.model, devices.list(), {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must be a CPU")));
}

TEST(PlaceModel, WeightsBeyondFreeMemory_AreRemarked) {
  const TestModel model("llama-gqa", 2);
  const NullDevices devices({"w0.gpu0:20k", "w1.gpu0:8", "w0.cpu0:1k", "local.cpu0:8"});
  PlacementOptions options;
  options.tensor_split = {1, 1};
  EXPECT_THAT(Texts(Place(model, devices, options).placement.remarks),
              ElementsAre("w0.gpu0 is to hold 0.2 MiB of weights and has 0.0 MiB free"));
}

TEST(PlaceModel, IdleDevices_AreRemarked) {
  const TestModel model("llama-gqa", 2);
  const Placed placed = Place(model, NullDevices(WorkerGpus(14)), {});
  EXPECT_THAT(Texts(placed.placement.remarks),
              ElementsAre("w1.gpu0, w2.gpu0, w3.gpu0, w5.gpu0, w6.gpu0, w7.gpu0, w8.gpu0, w10.gpu0 "
                          "and 3 more hold nothing"));
}

// Golden texts: what changes here changes for users.
TEST(PlacementText, OneCpu) {
  const TestModel model("llama-gqa", 4);
  const NullDevices devices({"local.blas0", "local.cpu0:8"});
  EXPECT_EQ(Place(model, devices, {}).Text(),
            R"(input layer: local.cpu0
layers 0 to 3: local.cpu0
output layer: local.cpu0
local.cpu0: 39 weights, 530112 bytes, 8 caches
)");
}

TEST(PlacementText, GpuWithExpertsAndCachesOnTheHost) {
  const TestModel model("llama-moe", 3);
  const NullDevices devices({"local.gpu0:8", "local.cpu0:8"});
  PlacementOptions options;
  options.n_gpu_layers = 3;
  options.n_cpu_moe = 2;
  options.kv_offload = false;
  options.overrides = {{"output_norm", "cpu"}, {"nothing", "cpu"}};
  EXPECT_EQ(Place(model, devices, options).Text(),
            R"(input layer: local.cpu0
layer 0: local.cpu0
layers 1 to 2: local.gpu0
output layer: local.gpu0
local.gpu0: 18 weights, 177792 bytes, 0 caches
local.cpu0: 15 weights, 301056 bytes, 6 caches
weight blk.1.ffn_gate_exps.weight: local.cpu0 (--n-cpu-moe 2)
weight blk.1.ffn_up_exps.weight: local.cpu0 (--n-cpu-moe 2)
weight blk.1.ffn_down_exps.weight: local.cpu0 (--n-cpu-moe 2)
weight output_norm.weight: local.cpu0 (-ot 'output_norm=cpu')
keys of layer 1: local.cpu0 (--no-kv-offload)
values of layer 1: local.cpu0 (--no-kv-offload)
keys of layer 2: local.cpu0 (--no-kv-offload)
values of layer 2: local.cpu0 (--no-kv-offload)
attention of layer 1: local.cpu0
attention of layer 2: local.cpu0
remark: -ot 'nothing=cpu' matches no weight
remark: --no-kv-offload: the caches of 2 of 3 layers lie in host memory, and their attention runs on the host's CPU
)");
}

TEST(PlacementText, Rack) {
  const TestModel model("qwen3moe", 30);
  const NullDevices devices({"w0.gpu0:8", "w1.gpu0:16", "w2.gpu0:24", "w0.cpu0:16", "w1.cpu0:16",
                             "w2.cpu0:16", "w3.cpu0:16", "local.cpu0:8"});
  EXPECT_EQ(Place(model, devices, {}).Text(),
            R"(input layer: w0.cpu0
layers 0 to 3: w0.gpu0
layers 4 to 11: w1.gpu0
layers 12 to 23: w2.gpu0
layers 24 to 29: w3.cpu0
output layer: w3.cpu0
w0.gpu0: 48 weights, 589312 bytes, 8 caches
w1.gpu0: 96 weights, 1178624 bytes, 16 caches
w2.gpu0: 144 weights, 1767936 bytes, 24 caches
w0.cpu0: 1 weights, 18432 bytes, 0 caches
w3.cpu0: 74 weights, 902592 bytes, 12 caches
)");
}

}  // namespace
}  // namespace weft
