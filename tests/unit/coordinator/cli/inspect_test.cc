#include "coordinator/cli/commands/inspect.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/gguf/gguf_split.h"
#include "common/gguf/gguf_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

GgufMetadata ModelMetadata() {
  GgufMetadata metadata;
  metadata.Set("general.architecture", std::string("llama"));
  metadata.Set("llama.block_count", uint32_t{2});
  metadata.Set("tokenizer.ggml.model", std::string("gpt2"));
  metadata.Set("tokenizer.ggml.pre", std::string("llama-bpe"));
  std::vector<std::string> tokens;
  tokens.reserve(1000);
  for (int i = 0; i < 1000; ++i) tokens.push_back(absl::StrCat("token", i));
  metadata.Set("tokenizer.ggml.tokens", GgufArray(tokens));
  return metadata;
}

struct TensorData {
  std::string name;
  DType dtype;
  Extents ne;
};

std::string WriteModel(const std::string& path, const GgufMetadata& metadata,
                       const std::vector<TensorData>& tensors, uint8_t fill = 0) {
  std::vector<GgufTensorSpec> specs;
  std::vector<std::vector<uint8_t>> data;
  for (const TensorData& tensor : tensors) {
    specs.push_back({tensor.name, *PackedLayout(tensor.dtype, tensor.ne)});
    data.emplace_back(*ByteExtent(specs.back().layout), fill);
  }
  const std::vector<absl::Span<const uint8_t>> spans(data.begin(), data.end());
  EXPECT_OK(WriteGgufFile(path, metadata, specs, spans));
  return path;
}

std::vector<TensorData> ModelTensors() {
  return {{"token_embd.weight", DType::kQ8_0, {64, 10, 1, 1}},
          {"output_norm.weight", DType::kF32, {64, 1, 1, 1}}};
}

struct Inspected {
  absl::Status status;
  std::string text;
};

Inspected Inspect(const std::string& path, bool json = false, bool check = false) {
  std::ostringstream out;
  InspectOptions options;
  options.json = json;
  options.check = check;
  options.supported_architectures = {"llama", "qwen2"};
  const absl::Status status = InspectFile(path, options, out);
  return {status, out.str()};
}

TEST(Inspect, Text_ListsMetadataTensorsSizesAndSupport) {
  const TemporaryFolder folder;
  const Inspected result =
      Inspect(WriteModel(folder.File("m.gguf"), ModelMetadata(), ModelTensors()));
  EXPECT_OK(result.status);
  EXPECT_THAT(result.text, HasSubstr("format: GGUF version 3"));
  EXPECT_THAT(result.text, HasSubstr("metadata: 5 keys"));
  EXPECT_THAT(result.text, ContainsRegex("general.architecture +string +'llama'"));
  EXPECT_THAT(result.text, ContainsRegex("llama.block_count +u32 +2\n"));
  EXPECT_THAT(result.text, HasSubstr("'token5', ... 1000 in all]"));
  EXPECT_THAT(result.text, Not(HasSubstr("token6")));
  EXPECT_THAT(result.text, ContainsRegex("token_embd.weight +Q8_0 +.64, 10. +680 "));
  EXPECT_THAT(result.text,
              ContainsRegex("F32 +1 tensors +64 elements +256 bytes +32.00 bits each"));
  EXPECT_THAT(result.text, ContainsRegex("total +2 tensors +704 elements +936 bytes"));
  EXPECT_THAT(result.text, HasSubstr("architecture: llama (supported)"));
  EXPECT_THAT(result.text, HasSubstr("model gpt2, pre llama-bpe, 1000 tokens, no chat template"));
  EXPECT_THAT(result.text, HasSubstr("weft can run it"));
}

TEST(Inspect, Json_HasTheSame) {
  const TemporaryFolder folder;
  const Inspected result =
      Inspect(WriteModel(folder.File("m.gguf"), ModelMetadata(), ModelTensors()), true);
  EXPECT_OK(result.status);
  const auto json = nlohmann::json::parse(result.text);
  EXPECT_EQ(json["version"], 3);
  EXPECT_EQ(json["files"][0]["path"], folder.File("m.gguf"));
  EXPECT_EQ(json["metadata"][1],
            (nlohmann::json{{"key", "llama.block_count"}, {"type", "u32"}, {"value", 2}}));
  EXPECT_EQ(json["metadata"][4]["count"], 1000);
  EXPECT_EQ(json["metadata"][4]["value"].size(), 6u);
  EXPECT_EQ(json["tensors"][0]["name"], "token_embd.weight");
  EXPECT_EQ(json["tensors"][0]["shape"], (nlohmann::json{64, 10, 1, 1}));
  EXPECT_EQ(json["tensors"][1]["bytes"], 256);
  EXPECT_EQ(json["types"]["Q8_0"]["bytes"], 680);
  EXPECT_EQ(json["totals"]["elements"], 704);
  EXPECT_EQ(json["support"]["can_run"], true);
  EXPECT_EQ(json["support"]["tokenizer"]["pre"], "llama-bpe");
  EXPECT_FALSE(json.contains("check"));
}

TEST(Inspect, WhatWeftCannotRun_IsSaid) {
  const TemporaryFolder folder;
  GgufMetadata metadata;
  metadata.Set("general.architecture", std::string("mystery"));
  const std::string path =
      WriteModel(folder.File("m.gguf"), metadata, {{"a", DType::kIQ2_XXS, {256, 1, 1, 1}}});
  const Inspected text = Inspect(path);
  EXPECT_OK(text.status);
  EXPECT_THAT(text.text, HasSubstr("mystery (not supported)"));
  EXPECT_THAT(text.text, HasSubstr("not computable: IQ2_XXS"));
  EXPECT_THAT(text.text, HasSubstr("tokenizer: none"));
  EXPECT_THAT(text.text, HasSubstr("weft cannot run it:\n    architecture 'mystery' is not among "
                                   "those supported: llama, qwen2\n"));
  const auto json = nlohmann::json::parse(Inspect(path, true).text);
  EXPECT_EQ(json["support"]["can_run"], false);
  EXPECT_EQ(json["support"]["obstacles"].size(), 3u);
  EXPECT_EQ(json["support"]["types_not_computable"], (nlohmann::json{"IQ2_XXS"}));
}

TEST(Inspect, EmptyFile_IsListed) {
  const TemporaryFolder folder;
  const std::string path = WriteModel(folder.File("m.gguf"), GgufMetadata(), {});
  const Inspected text = Inspect(path);
  EXPECT_OK(text.status);
  EXPECT_THAT(text.text, HasSubstr("the file names no architecture"));
  EXPECT_THAT(text.text, HasSubstr("the file has no tensors"));
  EXPECT_THAT(text.text, Not(HasSubstr("nan")));
  EXPECT_TRUE(nlohmann::json::accept(Inspect(path, true).text));
}

TEST(Inspect, HostileText_NeverReachesTerminalOrBreaksJson) {
  const TemporaryFolder folder;
  GgufMetadata metadata;
  metadata.Set("general.architecture", std::string("\x1B[2J\xFF\"\n"));
  metadata.Set("key\n\x1B", std::string("\xC0\x80\x9B\"\\"));
  metadata.Set("texts", GgufArray(std::vector<std::string>{"\xFF", std::string(5000, 'x')}));
  metadata.Set("floats", GgufArray(std::vector<double>{std::numeric_limits<double>::quiet_NaN(),
                                                       std::numeric_limits<double>::infinity()}));
  metadata.Set("tokenizer.ggml.model", std::string("\x07"));
  metadata.Set("tokenizer.ggml.tokens", uint8_t{3});
  const std::string path =
      WriteModel(folder.File("m.gguf"), metadata, {{"t\x1B[0m", DType::kF32, {1, 1, 1, 1}}});
  const Inspected text = Inspect(path);
  EXPECT_OK(text.status);
  EXPECT_TRUE(std::none_of(text.text.begin(), text.text.end(), [](char c) {
    return (static_cast<uint8_t>(c) < 0x20 && c != '\n') || c == 0x7F;
  }));
  EXPECT_THAT(text.text, HasSubstr("t\\x1b[0m"));
  EXPECT_LT(text.text.size(), 4000u);
  const auto json = nlohmann::json::parse(Inspect(path, true).text);
  EXPECT_EQ(json["metadata"][1]["key"], "key\n\x1B");
  EXPECT_TRUE(json["metadata"][3]["value"][0].is_null());
  EXPECT_EQ(json["support"]["tokenizer"]["tokens"], 0);
}

TEST(Inspect, Check_FindsDataThatIsNotFinite) {
  const TemporaryFolder folder;
  const std::string good = WriteModel(folder.File("good.gguf"), ModelMetadata(), ModelTensors(), 0);
  EXPECT_OK(Inspect(good, false, true).status);
  EXPECT_THAT(Inspect(good, false, true).text, HasSubstr("data check: 0 bad tensors"));
  const std::string bad =
      WriteModel(folder.File("bad.gguf"), ModelMetadata(), ModelTensors(), 0xFF);
  EXPECT_OK(Inspect(bad).status);
  const Inspected text = Inspect(bad, false, true);
  EXPECT_THAT(text.status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("bad.gguf: 2 bad tensors; the first is 'token_embd.weight': "
                                 "block 0 (byte 0): d is not finite")));
  EXPECT_THAT(text.text, HasSubstr("output_norm.weight: block 0 (byte 0): value is not finite"));
  const auto json = nlohmann::json::parse(Inspect(bad, true, true).text);
  EXPECT_EQ(json["check"].size(), 2u);
  EXPECT_EQ(json["check"][1]["tensor"], "output_norm.weight");
}

TEST(Inspect, SplitSet_IsOneModel) {
  const TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) {
    GgufMetadata metadata = i == 0 ? ModelMetadata() : GgufMetadata();
    metadata.Set("split.no", static_cast<uint16_t>(i));
    metadata.Set("split.count", uint16_t{2});
    metadata.Set("split.tensors.count", int32_t{2});
    WriteModel(GgufSplitPath(folder.File("m"), i, 2), metadata, {ModelTensors()[i]});
  }
  const std::string path = GgufSplitPath(folder.File("m"), 0, 2);
  const Inspected text = Inspect(path);
  EXPECT_OK(text.status);
  EXPECT_THAT(text.text, HasSubstr("in 2 files"));
  EXPECT_THAT(text.text, ContainsRegex("output_norm.weight +F32 .* 2\n"));
  const auto json = nlohmann::json::parse(Inspect(path, true).text);
  EXPECT_EQ(json["files"].size(), 2u);
  EXPECT_EQ(json["tensors"][1]["file"], 1);
}

TEST(Inspect, BadFile_WritesNothing) {
  const TemporaryFolder folder;
  const Inspected result = Inspect(folder.Write("m.gguf", "not a model, really not"));
  EXPECT_THAT(result.status, StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("m.gguf: field 'magic' = not :")));
  EXPECT_EQ(result.text, "");
}

}  // namespace
}  // namespace weft
