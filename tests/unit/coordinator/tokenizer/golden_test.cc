// Published vocabularies and the project's golden models against the token ids of the reference.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/gguf/gguf_file.h"
#include "coordinator/tokenizer/tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::filesystem::path& path) {
  auto file = GgufFile::Open(path.string());
  if (!file.ok()) return file.status();
  return Tokenizer::Create((*file)->metadata());
}

// The folder with other people's vocabularies, which are not part of the repository; empty if it is
// not there.
std::filesystem::path GoldenFolder() {
  const char* folder = std::getenv("WEFT_GOLDEN_DIR");
  return folder == nullptr ? "" : folder;
}

std::vector<std::string> ReadTexts(const std::filesystem::path& path) {
  const std::string content = ReadFile(path);
  std::vector<std::string> texts = absl::StrSplit(content, "\n__ggml_vocab_test__\n");
  if (!texts.empty() && texts.back().empty()) texts.pop_back();
  return texts;
}

std::vector<TokenId> ParseIds(const std::string& line) {
  std::vector<TokenId> ids;
  for (const auto& word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    TokenId id = 0;
    EXPECT_TRUE(absl::SimpleAtoi(word, &id)) << word;
    ids.push_back(id);
  }
  return ids;
}

class VocabularyGoldenTest : public ::testing::TestWithParam<const char*> {};

TEST_P(VocabularyGoldenTest, EveryLine_SameIdsAndRoundTrip) {
  if (GoldenFolder().empty()) GTEST_SKIP() << "WEFT_GOLDEN_DIR is not set";
  const std::string path =
      (GoldenFolder() / "tokenizers" / (std::string("ggml-vocab-") + GetParam() + ".gguf"))
          .string();
  ASSERT_OK_AND_ASSIGN(const auto tokenizer, LoadTokenizer(path));
  const std::vector<std::string> texts = ReadTexts(path + ".inp");
  std::vector<std::string> lines = absl::StrSplit(ReadFile(path + ".out"), '\n');
  ASSERT_EQ(texts.size(), 46u);
  ASSERT_GE(lines.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(
        const std::vector<TokenId> ids,
        tokenizer->Encode(texts[i], {.add_special = false, .parse_special = false}));
    EXPECT_EQ(ids, ParseIds(lines[i])) << "line " << i + 1 << ": " << texts[i];
    EXPECT_EQ(tokenizer->Decode(ids, {}), texts[i]) << "line " << i + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(All, VocabularyGoldenTest,
                         ::testing::Values("llama-spm", "gpt-2", "deepseek-coder"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Compares the texts of all models in `folder`; returns how many models had some.
int CheckModels(const std::filesystem::path& folder) {
  int model_count = 0;
  if (!std::filesystem::is_directory(folder)) return 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::filesystem::path cases_path = entry.path() / "cases.json";
    const std::filesystem::path model_path = entry.path() / "model.gguf";
    if (!std::filesystem::exists(cases_path) || !std::filesystem::exists(model_path)) continue;
    SCOPED_TRACE(entry.path().string());
    const auto cases = nlohmann::json::parse(ReadFile(cases_path));
    if (!cases.contains("text")) continue;
    const auto tokenizer = LoadTokenizer(model_path);
    EXPECT_OK(tokenizer);
    if (!tokenizer.ok()) continue;
    ++model_count;
    for (const auto& text : cases["text"]) {
      const auto ids = (*tokenizer)->Encode(text["text"].get<std::string>(), {});
      EXPECT_OK(ids);
      if (!ids.ok()) continue;
      EXPECT_EQ(*ids, text["tokens"].get<std::vector<TokenId>>()) << text["text"];
    }
  }
  return model_count;
}

TEST(ModelGoldenTest, GoldenModels_TextsGiveTheReferenceIds) {
  if (GoldenFolder().empty()) GTEST_SKIP() << "WEFT_GOLDEN_DIR is not set";
  EXPECT_GE(CheckModels(GoldenFolder() / "models"), 18);
}

TEST(ModelGoldenTest, ModelsInTheRepository_TextsGiveTheReferenceIds) {
  const char* data = std::getenv("WEFT_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "WEFT_TEST_DATA is not set";
  if (CheckModels(std::filesystem::path(data) / "models") == 0) {
    GTEST_SKIP() << "no models in " << data;
  }
}

}  // namespace
}  // namespace weft
