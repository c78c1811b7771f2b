#include "coordinator/models/model.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/graph/candidate_layout.h"
#include "coordinator/models/model_registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/editable_gguf.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string GoldenPath(const std::string& name) {
  return TestDataFolder() + "/models/" + name + "/model.gguf";
}

// Opens a golden model after an edit.
struct Edited {
  TemporaryFolder folder;
  std::unique_ptr<GgufFile> file;
  absl::StatusOr<std::unique_ptr<Model>> model;

  Edited(const std::string& name, const std::function<void(EditableGguf&)>& edit) {
    EditableGguf gguf = EditableGguf::Read(GoldenPath(name));
    edit(gguf);
    auto opened = GgufFile::Open(gguf.Write(folder.File("edited.gguf")));
    EXPECT_OK(opened);
    file = *std::move(opened);
    model = Model::Create(*file);
  }
};

TEST(Model, BuildGraph_EveryShape_Verifies) {
  for (const char* name : {"llama-plain", "llama-gqa", "llama-f16", "llama-moe", "llama3-rope",
                           "qwen2", "qwen3", "qwen3moe"}) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const auto file, GgufFile::Open(GoldenPath(name)));
    ASSERT_OK_AND_ASSIGN(const auto model, Model::Create(*file));
    EXPECT_TRUE(model->weight_table().Unused().empty());
    for (const int64_t tokens : {1, 2, 33}) {
      for (const int64_t outputs : {int64_t{0}, int64_t{1}, tokens}) {
        GraphShape shape;
        shape.tokens = tokens;
        shape.outputs = outputs;
        shape.pages_per_sequence = 4;
        shape.pages = 5;
        shape.halves = tokens == 2;
        ASSERT_OK_AND_ASSIGN(const ModelGraph graph, model->BuildGraph(shape));
        EXPECT_OK(VerifyGraph(graph.graph));
        if (outputs == 0) {
          EXPECT_EQ(graph.logits, kNoNode);
        } else {
          const Extents want = {model->hyperparameters().n_vocab, outputs, 1, 1};
          EXPECT_EQ(graph.graph.layout(graph.logits).ne, want);
        }
        ASSERT_OK_AND_ASSIGN(const ModelGraph again, model->BuildGraph(shape));
        EXPECT_EQ(graph.graph, again.graph);
      }
    }
  }
}

TEST(Model, BuildGraph_Candidates_StandForTheLogits) {
  ASSERT_OK_AND_ASSIGN(const auto file, GgufFile::Open(GoldenPath("llama-gqa")));
  ASSERT_OK_AND_ASSIGN(const auto model, Model::Create(*file));
  const int64_t n_vocab = model->hyperparameters().n_vocab;
  for (const int64_t changed : {0, 64}) {
    GraphShape shape;
    shape.tokens = 4;
    shape.outputs = 2;
    shape.candidates = 1 << 20;  // as many as there are
    shape.changed = changed;
    ASSERT_OK_AND_ASSIGN(const ModelGraph graph, model->BuildGraph(shape));
    EXPECT_OK(VerifyGraph(graph.graph));
    EXPECT_FALSE(graph.graph.node(graph.logits).output);
    EXPECT_TRUE(graph.graph.node(graph.candidates).output);
    const Extents want = {CandidateLayout{n_vocab, changed}.words(), 2, 1, 1};
    EXPECT_EQ(graph.graph.layout(graph.candidates).ne, want);
    shape.outputs = 0;
    ASSERT_OK_AND_ASSIGN(const ModelGraph none, model->BuildGraph(shape));
    EXPECT_EQ(none.candidates, kNoNode);
  }
}

TEST(Model, BuildGraph_ImpossibleShape_IsAnError) {
  ASSERT_OK_AND_ASSIGN(const auto file, GgufFile::Open(GoldenPath("llama-gqa")));
  ASSERT_OK_AND_ASSIGN(const auto model, Model::Create(*file));
  GraphShape shape;
  shape.tokens = 2;
  shape.outputs = 3;
  EXPECT_THAT(model->BuildGraph(shape),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 outputs")));
  shape = {.tokens = 3, .halves = true};
  EXPECT_THAT(model->BuildGraph(shape),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 tokens in halves")));
}

TEST(Model, Create_UnknownArchitecture_ListsTheKnown) {
  const Edited edited("llama-gqa", [](EditableGguf& gguf) {
    gguf.metadata.Set("general.architecture", std::string("mamba"));
  });
  EXPECT_THAT(edited.model, StatusIs(absl::StatusCode::kUnimplemented,
                                     AllOf(HasSubstr("'mamba'"), HasSubstr("llama, qwen2"))));
}

struct BadFile {
  const char* what;
  std::function<void(EditableGguf&)> edit;
  absl::StatusCode code;
  const char* text;
};

TEST(Model, Create_BadFiles_NameTheCulprit) {
  const auto set = [](const char* key, const GgufValue& value) {
    return [key, value](EditableGguf& gguf) { gguf.metadata.Set(key, value); };
  };
  const std::vector<BadFile> files = {
      {"missing tensor", [](EditableGguf& g) { g.Remove("blk.1.ffn_up.weight"); },
       absl::StatusCode::kNotFound, "missing tensor 'blk.1.ffn_up.weight'"},
      {"wrong shape", set("llama.feed_forward_length", uint32_t{128}),
       absl::StatusCode::kInvalidArgument, "'blk.0.ffn_gate.weight' has extents [48, 160]"},
      {"no layers", set("llama.block_count", uint32_t{0}), absl::StatusCode::kInvalidArgument,
       "'llama.block_count' is 0"},
      {"absurd layers", set("llama.block_count", uint32_t{100000}),
       absl::StatusCode::kInvalidArgument, "'llama.block_count' is 100000"},
      {"heads that KV heads do not divide", set("llama.attention.head_count_kv", uint32_t{4}),
       absl::StatusCode::kInvalidArgument, "4 KV heads do not divide 6 heads"},
      {"no heads", set("llama.attention.head_count", uint32_t{0}),
       absl::StatusCode::kInvalidArgument, "'llama.attention.head_count' is 0"},
      {"text for a number", set("llama.embedding_length", std::string("48")),
       absl::StatusCode::kInvalidArgument, "'llama.embedding_length' is string"},
      {"odd rotary size", set("llama.rope.dimension_count", uint32_t{7}),
       absl::StatusCode::kInvalidArgument, "'llama.rope.dimension_count' is 7"},
      {"unknown scaling", set("llama.rope.scaling.type", std::string("spiral")),
       absl::StatusCode::kInvalidArgument, "'spiral'"},
      {"YaRN limit of 0", set("llama.rope.scaling.yarn_beta_fast", 0.0f),
       absl::StatusCode::kInvalidArgument, "yarn_beta_fast' is 0, want > 0"},
      {"multiplier that is not a number",
       set("llama.rope.scaling.yarn_log_multiplier", std::nanf("")),
       absl::StatusCode::kInvalidArgument, "yarn_log_multiplier' is nan"},
      {"factor without an inverse", set("llama.rope.scale_linear", 1e-45f),
       absl::StatusCode::kInvalidArgument, "'llama.rope.scale_linear' is 1"},
      {"epsilon that is not a number", set("llama.attention.layer_norm_rms_epsilon", std::nanf("")),
       absl::StatusCode::kInvalidArgument, "layer_norm_rms_epsilon"},
      {"too few values per layer",
       set("llama.attention.head_count", GgufArray(std::vector<uint32_t>{6})),
       absl::StatusCode::kInvalidArgument, "has 1 values for 2 layers"},
      {"a type without kernels",
       [](EditableGguf& g) {
         g.Remove("output.weight");
         g.AddZeros("output.weight", DType::kF64, {48, 128, 1, 1});
       },
       absl::StatusCode::kUnimplemented, "'output.weight' has type F64"},
      {"a norm that is not F32",
       [](EditableGguf& g) {
         g.Remove("output_norm.weight");
         g.AddZeros("output_norm.weight", DType::kF16, {48, 1, 1, 1});
       },
       absl::StatusCode::kInvalidArgument, "'output_norm.weight' is F16, want F32"},
      {"more experts used than there are",
       [](EditableGguf& g) {
         g.metadata.Set("llama.expert_count", uint32_t{2});
         g.metadata.Set("llama.expert_used_count", uint32_t{3});
       },
       absl::StatusCode::kInvalidArgument, "'llama.expert_used_count' is 3"},
  };
  for (const BadFile& bad : files) {
    SCOPED_TRACE(bad.what);
    const Edited edited("llama-gqa", bad.edit);
    EXPECT_THAT(edited.model, StatusIs(bad.code, HasSubstr(bad.text)));
  }
}

TEST(Model, Create_ExtraTensor_IsListedAsUnused) {
  const Edited edited("llama-gqa", [](EditableGguf& gguf) {
    gguf.AddZeros("v.patch_embd.weight", DType::kF32, {4, 1, 1, 1});
  });
  ASSERT_OK(edited.model);
  EXPECT_THAT((*edited.model)->weight_table().Unused(),
              testing::ElementsAre("v.patch_embd.weight"));
}

TEST(Model, RopeParameters_FollowTheScaling) {
  const auto rope = [](const std::function<void(EditableGguf&)>& edit) {
    const Edited edited("llama-gqa", edit);
    EXPECT_OK(edited.model);
    return (*edited.model)->hyperparameters().rope;
  };
  const RopeAttributes plain = rope([](EditableGguf&) {});
  EXPECT_EQ(plain.frequency_scale, 1);
  EXPECT_EQ(plain.extrapolation, 0);
  EXPECT_EQ(plain.attention_factor, 1);

  const RopeAttributes linear = rope([](EditableGguf& g) {
    g.metadata.Set("llama.rope.scaling.type", std::string("linear"));
    g.metadata.Set("llama.rope.scaling.factor", 4.0f);
  });
  EXPECT_EQ(linear.frequency_scale, 0.25f);
  EXPECT_EQ(linear.extrapolation, 0);

  const RopeAttributes none = rope([](EditableGguf& g) {
    g.metadata.Set("llama.rope.scaling.type", std::string("none"));
    g.metadata.Set("llama.rope.scaling.factor", 4.0f);
  });
  EXPECT_EQ(none.frequency_scale, 1);

  // Spec M.1: after the cancellation the factor is 1, since the op multiplies by 1 + 0.1 ln(32)
  // itself.
  const RopeAttributes yarn = rope([](EditableGguf& g) {
    g.metadata.Set("llama.rope.scaling.type", std::string("yarn"));
    g.metadata.Set("llama.rope.scaling.factor", 32.0f);
    g.metadata.Set("llama.rope.scaling.original_context_length", uint32_t{4096});
  });
  EXPECT_EQ(yarn.frequency_scale, 1.0f / 32);
  EXPECT_EQ(yarn.extrapolation, 1);
  EXPECT_EQ(yarn.original_context, 4096);
  EXPECT_NEAR(yarn.attention_factor, 1.0f, 1e-6);
}

int64_t VocabularyAfter(const std::function<void(EditableGguf&)>& edit) {
  const Edited edited("llama-gqa", edit);
  EXPECT_OK(edited.model);
  return edited.model.ok() ? (*edited.model)->hyperparameters().n_vocab : -1;
}

TEST(Model, Vocabulary_WithoutKey_IsThatOfTokenizerOrEmbedding) {
  EXPECT_EQ(
      VocabularyAfter([](EditableGguf& g) { g.metadata.Set("llama.vocab_size", uint32_t{0}); }),
      128);
  const auto tokens = [](size_t count) { return GgufArray(std::vector<std::string>(count, "x")); };
  // As many tokens as the embedding has rows: the key is stale.
  EXPECT_EQ(VocabularyAfter([&](EditableGguf& g) {
              g.metadata.Set("llama.vocab_size", uint32_t{126});
              g.metadata.Set("tokenizer.ggml.tokens", tokens(128));
            }),
            128);
  const Edited edited("llama-gqa", [&](EditableGguf& g) {
    g.metadata.Set("llama.vocab_size", uint32_t{126});
    g.metadata.Set("tokenizer.ggml.tokens", tokens(126));
  });
  EXPECT_THAT(edited.model,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'token_embd.weight'")));
}

TEST(Model, ExpertWeightsNorm_OfLlama_IsOfTheFamily) {
  const Edited edited("llama-moe",
                      [](EditableGguf& g) { g.metadata.Set("llama.expert_weights_norm", false); });
  ASSERT_OK(edited.model);
  EXPECT_TRUE((*edited.model)->hyperparameters().expert_weights_norm);
}

TEST(Model, TiedOutput_IsAWeightOfItsOwn) {
  ASSERT_OK_AND_ASSIGN(const auto file, GgufFile::Open(GoldenPath("llama3-rope")));
  ASSERT_OK_AND_ASSIGN(const auto model, Model::Create(*file));
  const WeightTable& table = model->weight_table();
  const int32_t embedding = table.Find("token_embd.weight");
  const int32_t output = table.Find("output.weight");
  ASSERT_GE(embedding, 0);
  ASSERT_GE(output, 0);
  EXPECT_NE(embedding, output);
  EXPECT_EQ(table.weights()[output].role, WeightRole::kOutput);
  EXPECT_EQ(table.weights()[output].layout, table.weights()[embedding].layout);
  EXPECT_EQ(table.TensorsOf(table.weights()[output]), table.TensorsOf(table.weights()[embedding]));
  EXPECT_TRUE(table.Unused().empty());
  // The two uses are two leafs.
  ASSERT_OK_AND_ASSIGN(const ModelGraph graph, model->BuildGraph({}));
  const auto users = [&](int32_t id) {
    std::vector<Op> ops;
    for (const Node& node : graph.graph.nodes()) {
      for (const NodeId source : node.sources) {
        const LeafAttributes* leaf = graph.graph.leaf(source);
        if (leaf != nullptr && leaf->kind == LeafKind::kWeight && leaf->id == id) {
          ops.push_back(node.op);
        }
      }
    }
    return ops;
  };
  EXPECT_THAT(users(embedding), testing::ElementsAre(Op::kGetRows));
  EXPECT_THAT(users(output), testing::ElementsAre(Op::kMulMat));

  const Edited untied("llama3-rope", [](EditableGguf& g) {
    const GgufTensorSpec& spec = g.tensors[g.Find("token_embd.weight")];
    g.AddZeros("output.weight", spec.layout.dtype, Extents(spec.layout.ne));
  });
  ASSERT_OK(untied.model);
  const WeightTable& own = (*untied.model)->weight_table();
  EXPECT_TRUE(own.weights()[own.Find("output.weight")].parts.empty());
  EXPECT_TRUE(own.Unused().empty());
}

TEST(Model, RopeFactors_AreAWeightOfEachLayer) {
  ASSERT_OK_AND_ASSIGN(const auto file, GgufFile::Open(GoldenPath("llama3-rope")));
  ASSERT_OK_AND_ASSIGN(const auto model, Model::Create(*file));
  const WeightTable& table = model->weight_table();
  for (int32_t layer = 0; layer < model->hyperparameters().n_layer; ++layer) {
    const int32_t id = table.Find(absl::StrCat("blk.", layer, ".rope_freqs.weight"));
    ASSERT_GE(id, 0);
    EXPECT_EQ(table.weights()[id].layer, layer);
    EXPECT_THAT(table.TensorsOf(table.weights()[id]),
                testing::ElementsAre(file->FindTensor("rope_freqs.weight")));
  }
}

// Takes the experts of llama-moe's `name` apart into a tensor each, as older files have them.
void Unstack(EditableGguf& g, const std::string& name) {
  const size_t at = g.Find(name + "_exps.weight");
  const Extents ne = g.tensors[at].layout.ne;
  const DType dtype = g.tensors[at].layout.dtype;
  const std::vector<uint8_t> data = g.data[at];
  g.Remove(name + "_exps.weight");
  const auto bytes = static_cast<std::ptrdiff_t>(data.size()) / ne[2];
  for (int64_t i = 0; i < ne[2]; ++i) {
    const std::string part = absl::StrCat(name, ".", i, ".weight");
    g.AddZeros(part, dtype, {ne[0], ne[1], 1, 1});
    g.data[g.Find(part)].assign(data.begin() + i * bytes, data.begin() + (i + 1) * bytes);
  }
}

TEST(Model, ExpertsInTensorsOfTheirOwn_AreOneWeight) {
  const auto unstack = [](EditableGguf& g) {
    Unstack(g, "blk.0.ffn_down");
    Unstack(g, "blk.1.ffn_gate");
  };
  const Edited edited("llama-moe", unstack);
  ASSERT_OK(edited.model);
  const WeightTable& table = (*edited.model)->weight_table();
  EXPECT_TRUE(table.Unused().empty());
  const int32_t id = table.Find("blk.0.ffn_down_exps.weight");
  ASSERT_GE(id, 0);
  const Weight& weight = table.weights()[id];
  EXPECT_EQ(weight.parts.front(), "blk.0.ffn_down.0.weight");
  EXPECT_EQ(static_cast<int64_t>(weight.parts.size()), weight.layout.ne[2]);

  const Edited missing("llama-moe", [&](EditableGguf& g) {
    unstack(g);
    g.Remove("blk.1.ffn_gate.1.weight");
  });
  EXPECT_THAT(missing.model, StatusIs(absl::StatusCode::kNotFound,
                                      HasSubstr("missing tensor 'blk.1.ffn_gate.1.weight'")));
}

TEST(Model, LongRope_FactorsFollowTheContext) {
  const Edited edited("llama-gqa", [](EditableGguf& g) {
    g.metadata.Set("llama.rope.scaling.type", std::string("longrope"));
    g.metadata.Set("llama.rope.scaling.original_context_length", uint32_t{64});
    g.AddZeros("rope_factors_long.weight", DType::kF32, {4, 1, 1, 1});
    g.AddZeros("rope_factors_short.weight", DType::kF32, {4, 1, 1, 1});
  });
  ASSERT_OK(edited.model);
  EXPECT_TRUE((*edited.model)->weight_table().Unused().empty());
  const auto uses = [&](int64_t context, const char* name) {
    GraphShape shape;
    shape.context = context;
    const absl::StatusOr<ModelGraph> graph = (*edited.model)->BuildGraph(shape);
    EXPECT_OK(graph);
    const std::string text = GraphText(graph->graph);
    return text.find(name) != std::string::npos;
  };
  EXPECT_TRUE(uses(64, "rope_factors_short"));
  EXPECT_FALSE(uses(64, "rope_factors_long"));
  EXPECT_TRUE(uses(65, "rope_factors_long"));
  EXPECT_FALSE(uses(65, "rope_factors_short"));
}

TEST(Registry, Names_AreUniqueAndComplete) {
  for (const Architecture& architecture : AllArchitectures()) {
    EXPECT_EQ(FindArchitecture(architecture.name), &architecture);
    EXPECT_NE(architecture.refine, nullptr);
    EXPECT_NE(architecture.declare, nullptr);
    EXPECT_NE(architecture.build, nullptr);
  }
}

}  // namespace
}  // namespace weft
