#include "coordinator/cli/commands/synth.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "common/gguf/gguf_file.h"
#include "common/tensor/quant/reference_codec.h"
#include "coordinator/tokenizer/tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using testing::HasSubstr;

class SynthFile : public testing::Test {
 protected:
  ~SynthFile() override {
    for (const std::string& path : paths_) std::remove(path.c_str());
  }

  SynthOptions Options(const std::string& architecture, const std::string& type) {
    SynthOptions options;
    options.path = testing::TempDir() + "/weft_synth_" + std::to_string(getpid()) + "_" +
                   std::to_string(paths_.size()) + ".gguf";
    paths_.push_back(options.path);
    options.model.architecture = architecture;
    options.model.type = type;
    options.model.shape = {.embedding_length = 256,
                           .layer_count = 2,
                           .head_count = 4,
                           .head_count_kv = 2,
                           .feed_forward_length = 512,
                           .vocabulary_size = 1000,
                           .head_length = 64};
    if (architecture == "qwen3moe") {
      options.model.shape.expert_count = 3;
      options.model.shape.expert_used_count = 2;
      options.model.shape.expert_feed_forward_length = 256;
    }
    return options;
  }

  static std::string Contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::vector<std::string> paths_;
};

// Opens the file and compares each tensor with the plan: layout, mean and deviation.
void ExpectFileAsPlanned(const SynthOptions& options) {
  ASSERT_OK_AND_ASSIGN(const SynthPlan plan, MakeSynthPlan(options.model));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<GgufFile> file, GgufFile::Open(options.path));
  ASSERT_EQ(file->tensors().size(), plan.tensors.size());
  EXPECT_EQ(file->metadata().entries().size(), plan.metadata.entries().size());
  for (const SynthTensor& wanted : plan.tensors) {
    SCOPED_TRACE(wanted.name);
    const GgufTensor* const tensor = file->FindTensor(wanted.name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->layout, wanted.layout);
    std::vector<float> values(static_cast<size_t>(ElementCount(tensor->layout)));
    ASSERT_OK(Dequantize(tensor->layout.dtype, file->TensorBytes(*tensor), absl::MakeSpan(values)));
    double sum = 0;
    double squares = 0;
    for (const float value : values) {
      ASSERT_TRUE(std::isfinite(value));
      sum += static_cast<double>(value);
      const double difference = static_cast<double>(value) - wanted.mean;
      squares += difference * difference;
    }
    const double count = static_cast<double>(values.size());
    // Short vectors stray by chance, scales by their digits.
    const double slack = 0.04 + 5.0 / std::sqrt(count);
    EXPECT_NEAR(sum / count, wanted.mean, slack * wanted.deviation);
    EXPECT_NEAR(std::sqrt(squares / count), wanted.deviation, slack * wanted.deviation);
  }
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer,
                       Tokenizer::Create(file->metadata()));
  EXPECT_EQ(tokenizer->vocabulary_size(), options.model.shape.vocabulary_size);
}

TEST_F(SynthFile, EveryType_IsAsPlanned) {
  std::vector<std::string> types = {"Q4_K_M"};
  for (const DTypeInfo& info : AllDTypes()) {
    if (info.codec) types.emplace_back(info.name);
  }
  for (const std::string& type : types) {
    SCOPED_TRACE(type);
    const SynthOptions options = Options("llama", type);
    ASSERT_OK(WriteSyntheticModel(options));
    ExpectFileAsPlanned(options);
  }
}

TEST_F(SynthFile, EveryArchitecture_IsAsPlanned) {
  for (const std::string architecture : {"llama", "qwen2", "qwen3", "qwen3moe"}) {
    for (const bool tied : {false, true}) {
      SCOPED_TRACE(architecture + (tied ? ", tied" : ""));
      SynthOptions options = Options(architecture, "Q8_0");
      options.model.tied_output = tied;
      ASSERT_OK(WriteSyntheticModel(options));
      ExpectFileAsPlanned(options);
    }
  }
}

TEST_F(SynthFile, Seed_DecidesBytes) {
  SynthOptions options = Options("llama", "Q4_K_M");
  ASSERT_OK(WriteSyntheticModel(options));
  const std::string first = Contents(options.path);
  SynthOptions again = Options("llama", "Q4_K_M");
  ASSERT_OK(WriteSyntheticModel(again));
  EXPECT_TRUE(first == Contents(again.path));
  again.seed = 2;
  ASSERT_OK(WriteSyntheticModel(again));
  const std::string other = Contents(again.path);
  EXPECT_EQ(first.size(), other.size());
  EXPECT_FALSE(first == other);
}

TEST_F(SynthFile, EqualTensors_HaveDifferentValues) {
  const SynthOptions options = Options("llama", "Q8_0");
  ASSERT_OK(WriteSyntheticModel(options));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<GgufFile> file, GgufFile::Open(options.path));
  const auto bytes = [&](const char* name) { return file->TensorBytes(*file->FindTensor(name)); };
  EXPECT_FALSE(bytes("blk.0.ffn_up.weight") == bytes("blk.0.ffn_gate.weight"));
  EXPECT_FALSE(bytes("blk.0.ffn_up.weight") == bytes("blk.1.ffn_up.weight"));
}

TEST_F(SynthFile, Progress_CountsToTotal) {
  SynthOptions options = Options("llama", "F32");
  options.model.shape.vocabulary_size = 3000;  // a tensor of three pieces
  std::vector<std::pair<int64_t, int64_t>> calls;
  options.progress = [&](int64_t done, int64_t total) { calls.emplace_back(done, total); };
  ASSERT_OK(WriteSyntheticModel(options));
  ASSERT_GE(calls.size(), 22u);
  int64_t before = 0;
  for (const auto& [done, total] : calls) {
    EXPECT_GT(done, before);
    EXPECT_EQ(total, calls.front().second);
    EXPECT_LE(done - before, 1 << 20);  // pieces, not whole tensors
    before = done;
  }
  EXPECT_EQ(calls.back().first, calls.back().second);
}

TEST_F(SynthFile, Errors_LeaveNoFile) {
  SynthOptions options = Options("llama", "Q4_K");
  options.model.shape.embedding_length = 192;
  EXPECT_THAT(WriteSyntheticModel(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token_embd.weight")));
  EXPECT_FALSE(std::ifstream(options.path).good());
  SynthOptions nowhere = Options("llama", "Q4_0");
  nowhere.path = "/nonexistent/folder/model.gguf";
  EXPECT_THAT(WriteSyntheticModel(nowhere),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nonexistent/folder")));
}

}  // namespace
}  // namespace weft
