#include "coordinator/cli/synth/synth_plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SynthModel TinyModel(const std::string& architecture) {
  SynthModel model;
  model.architecture = architecture;
  model.shape = {.embedding_length = 64,
                 .layer_count = 2,
                 .head_count = 4,
                 .head_count_kv = 2,
                 .feed_forward_length = 96,
                 .vocabulary_size = 300,
                 .head_length = 32};
  return model;
}

const SynthTensor* Find(const SynthPlan& plan, const std::string& name) {
  for (const SynthTensor& tensor : plan.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

// "name type [extents]" of the tensors outside layers and of layer 0, in order.
std::vector<std::string> Lines(const SynthPlan& plan) {
  std::vector<std::string> lines;
  for (const SynthTensor& tensor : plan.tensors) {
    if (tensor.name.starts_with("blk.") && !tensor.name.starts_with("blk.0.")) continue;
    lines.push_back(tensor.name + " " + LayoutText(tensor.layout));
  }
  return lines;
}

TEST(SynthPlan, Llama_HasTensorsOfFamily) {
  ASSERT_OK_AND_ASSIGN(const SynthPlan plan, MakeSynthPlan(TinyModel("llama")));
  EXPECT_THAT(
      Lines(plan),
      ElementsAre("token_embd.weight Q4_0 [64, 300]", "blk.0.attn_norm.weight F32 [64]",
                  "blk.0.attn_q.weight Q4_0 [64, 128]", "blk.0.attn_k.weight Q4_0 [64, 64]",
                  "blk.0.attn_v.weight Q4_0 [64, 64]", "blk.0.attn_output.weight Q4_0 [128, 64]",
                  "blk.0.ffn_norm.weight F32 [64]", "blk.0.ffn_gate.weight Q4_0 [64, 96]",
                  "blk.0.ffn_up.weight Q4_0 [64, 96]", "blk.0.ffn_down.weight Q4_0 [96, 64]",
                  "output_norm.weight F32 [64]"));
  EXPECT_EQ(plan.tensors.size(), 20u);
}

TEST(SynthPlan, Qwen2_HasBiases) {
  SynthModel model = TinyModel("qwen2");
  model.tied_output = false;
  ASSERT_OK_AND_ASSIGN(const SynthPlan plan, MakeSynthPlan(model));
  for (const char* name : {"attn_q", "attn_k", "attn_v"}) {
    const std::string prefix = std::string("blk.1.") + name;
    const SynthTensor* const bias = Find(plan, prefix + ".bias");
    ASSERT_NE(bias, nullptr) << prefix;
    EXPECT_EQ(bias->layout.ne[0], Find(plan, prefix + ".weight")->layout.ne[1]);
  }
  EXPECT_NE(Find(plan, "output.weight"), nullptr);
  EXPECT_EQ(Find(plan, "blk.0.attn_q_norm.weight"), nullptr);
}

TEST(SynthPlan, LlamaWithBiases_OnRequest) {
  SynthModel model = TinyModel("llama");
  model.attention_bias = true;
  ASSERT_OK_AND_ASSIGN(const SynthPlan plan, MakeSynthPlan(model));
  EXPECT_NE(Find(plan, "blk.0.attn_v.bias"), nullptr);
  model.architecture = "qwen3";
  EXPECT_THAT(MakeSynthPlan(model),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no biases")));
}

TEST(SynthPlan, Qwen3_HasHeadNorms) {
  ASSERT_OK_AND_ASSIGN(const SynthPlan plan, MakeSynthPlan(TinyModel("qwen3")));
  for (const char* name : {"blk.0.attn_q_norm.weight", "blk.1.attn_k_norm.weight"}) {
    ASSERT_NE(Find(plan, name), nullptr);
    EXPECT_EQ(LayoutText(Find(plan, name)->layout), "F32 [32]");
  }
  EXPECT_EQ(Find(plan, "blk.0.attn_q.bias"), nullptr);
}

TEST(SynthPlan, Qwen3Moe_HasExperts) {
  SynthModel model = TinyModel("qwen3moe");
  model.shape.expert_count = 5;
  model.shape.expert_used_count = 2;
  model.shape.expert_feed_forward_length = 32;
  ASSERT_OK_AND_ASSIGN(const SynthPlan plan, MakeSynthPlan(model));
  EXPECT_THAT(Lines(plan), testing::IsSupersetOf({
                               "blk.0.ffn_gate_inp.weight F32 [64, 5]",
                               "blk.0.ffn_gate_exps.weight Q4_0 [64, 32, 5]",
                               "blk.0.ffn_up_exps.weight Q4_0 [64, 32, 5]",
                               "blk.0.ffn_down_exps.weight Q4_0 [32, 64, 5]",
                               "blk.0.attn_q_norm.weight F32 [32]",
                           }));
  EXPECT_EQ(Find(plan, "blk.0.ffn_gate.weight"), nullptr);
  EXPECT_EQ(*plan.metadata.Integer("qwen3moe.expert_count"), 5);
  EXPECT_EQ(*plan.metadata.Integer("qwen3moe.expert_used_count"), 2);
  EXPECT_EQ(*plan.metadata.Integer("qwen3moe.expert_feed_forward_length"), 32);
  EXPECT_EQ(*plan.metadata.Integer("qwen3moe.feed_forward_length"), 96);
}

TEST(SynthPlan, LlamaWithExperts_UsesFeedForwardLength) {
  SynthModel model = TinyModel("llama");
  model.shape.expert_count = 4;
  model.shape.expert_used_count = 2;
  ASSERT_OK_AND_ASSIGN(const SynthPlan plan, MakeSynthPlan(model));
  EXPECT_EQ(LayoutText(Find(plan, "blk.1.ffn_down_exps.weight")->layout), "Q4_0 [96, 64, 4]");
  EXPECT_FALSE(plan.metadata.Has("llama.expert_feed_forward_length"));
}

TEST(SynthPlan, Metadata_HasRequiredKeys) {
  for (const std::string architecture : {"llama", "qwen2", "qwen3"}) {
    ASSERT_OK_AND_ASSIGN(const SynthPlan plan, MakeSynthPlan(TinyModel(architecture)));
    const GgufMetadata& metadata = plan.metadata;
    EXPECT_EQ(*metadata.String("general.architecture"), architecture);
    const auto integer = [&](const std::string& key) {
      const absl::StatusOr<int64_t> value = metadata.Integer(absl::StrCat(architecture, ".", key));
      EXPECT_OK(value.status());
      return value.value_or(-1);
    };
    EXPECT_EQ(integer("block_count"), 2);
    EXPECT_EQ(integer("context_length"), 8192);
    EXPECT_EQ(integer("embedding_length"), 64);
    EXPECT_EQ(integer("feed_forward_length"), 96);
    EXPECT_EQ(integer("attention.head_count"), 4);
    EXPECT_EQ(integer("attention.head_count_kv"), 2);
    EXPECT_EQ(integer("attention.key_length"), 32);
    EXPECT_EQ(integer("attention.value_length"), 32);
    EXPECT_EQ(integer("rope.dimension_count"), 32);
    EXPECT_EQ(integer("vocab_size"), 300);
    EXPECT_GT(*metadata.Float(architecture + ".rope.freq_base"), 1.0);
    EXPECT_GT(*metadata.Float(architecture + ".attention.layer_norm_rms_epsilon"), 0.0);
    EXPECT_FALSE(metadata.Has(architecture + ".expert_count"));
    EXPECT_EQ(metadata.Strings("tokenizer.ggml.tokens")->size(), 300u);
    EXPECT_EQ(metadata.Integers("tokenizer.ggml.token_type")->size(), 300u);
  }
}

int64_t TotalMebibytes(const std::string& shape, const std::string& type) {
  SynthModel model;
  model.type = type;
  model.shape = *NamedSynthShape(shape);
  const absl::StatusOr<SynthPlan> plan = MakeSynthPlan(model);
  EXPECT_OK(plan.status());
  int64_t total = 0;
  for (const SynthTensor& tensor : plan->tensors) total += *ByteExtent(tensor.layout);
  return (total + (1 << 19)) >> 20;
}

// The sizes of the files that this project is compared on.
TEST(SynthPlan, NamedShapes_HaveKnownSizes) {
  EXPECT_EQ(TotalMebibytes("1b", "Q4_0"), 728);
  EXPECT_EQ(TotalMebibytes("1b", "Q8_0"), 1252);
  EXPECT_EQ(TotalMebibytes("1b", "Q4_K_M"), 763);
  EXPECT_GT(TotalMebibytes("8b", "F32"), 28000);
  EXPECT_THAT(NamedSynthShape("2b"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("160m, 1b, 3b or 8b")));
}

TEST(SynthPlan, NamedShapes_HaveWholeBlocksOfEveryType) {
  for (const std::string name : {"160m", "1b", "3b", "8B"}) {
    ASSERT_OK_AND_ASSIGN(const SynthShape shape, NamedSynthShape(name));
    EXPECT_EQ(shape.embedding_length % 256, 0) << name;
    EXPECT_EQ(shape.feed_forward_length % 256, 0) << name;
    EXPECT_EQ(shape.head_count * shape.head_length % 256, 0) << name;
  }
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec) continue;
    EXPECT_GT(TotalMebibytes("160m", std::string(info.name)), 0) << info.name;
  }
}

TEST(SynthPlan, Q4_K_M_HasLargerTypesInHalfOfLayers) {
  SynthModel model;
  model.type = "q4_k_m";
  model.shape = *NamedSynthShape("3b");
  ASSERT_OK_AND_ASSIGN(const SynthPlan plan, MakeSynthPlan(model));
  const auto count = [&](const std::string& suffix, DType dtype) {
    return std::count_if(plan.tensors.begin(), plan.tensors.end(), [&](const SynthTensor& tensor) {
      return tensor.name.ends_with(suffix) && tensor.layout.dtype == dtype;
    });
  };
  EXPECT_EQ(count("attn_v.weight", DType::kQ6_K), 14);
  EXPECT_EQ(count("attn_v.weight", DType::kQ4_K), 14);
  EXPECT_EQ(count("ffn_down.weight", DType::kQ6_K), 14);
  EXPECT_EQ(count("attn_k.weight", DType::kQ4_K), 28);
  EXPECT_EQ(Find(plan, "token_embd.weight")->layout.dtype, DType::kQ6_K);
  EXPECT_EQ(*plan.metadata.Integer("general.file_type"), 15);
}

TEST(SynthPlan, BadModels_AreRefusedByName) {
  const auto refused = [](const SynthModel& model, const std::string& text) {
    EXPECT_THAT(MakeSynthPlan(model),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  refused(TinyModel("mamba"), "mamba");
  SynthModel model = TinyModel("llama");
  model.type = "Q4_9";
  refused(model, "Q4_9");
  model.type = "IQ2_XXS";  // known, but without a codec
  refused(model, "IQ2_XXS");
  model.type = "Q4_K";  // rows of 64
  refused(model, "token_embd.weight");
  refused(TinyModel("qwen3moe"), "expert count 0");
  model = TinyModel("qwen2");
  model.shape.expert_count = 4;
  refused(model, "expert count 4 of qwen2");
  model = TinyModel("llama");
  model.shape.head_count_kv = 3;
  refused(model, "4 heads");
  model.shape.head_count_kv = 5;
  refused(model, "KV head count 5");
  model = TinyModel("llama");
  model.shape.head_length = 31;
  refused(model, "31 is odd");
  model.shape.head_length = 32;
  model.shape.vocabulary_size = 100;
  refused(model, "vocabulary size 100");
  model = TinyModel("llama");
  model.shape.layer_count = 0;
  refused(model, "layer count 0");
  model.shape.layer_count = 513;
  refused(model, "layer count 513");
  refused(SynthModel(), "embedding length 0");
}

}  // namespace
}  // namespace weft
