#include "coordinator/tokenizer/vocabulary.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/tokenizer/sample_vocabularies.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(VocabularyTest, NoTokens_NamesTheKey) {
  EXPECT_THAT(Vocabulary::Create(GgufMetadata()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("tokenizer.ggml.tokens")));
  EXPECT_THAT(Vocabulary::Create(MakeMetadata("llama", {})),
              StatusIs(kInvalid, HasSubstr("'tokenizer.ggml.tokens' has 0 elements")));
}

TEST(VocabularyTest, LengthsThatDiffer_NameKeyAndLengths) {
  GgufMetadata metadata = MakeMetadata("llama", {{"a"}, {"b"}});
  metadata.Set("tokenizer.ggml.scores", GgufArray(std::vector<float>{1.0f}));
  EXPECT_THAT(Vocabulary::Create(metadata),
              StatusIs(kInvalid, HasSubstr("'tokenizer.ggml.scores' has 1 elements, want 2")));
  metadata = MakeMetadata("llama", {{"a"}, {"b"}});
  metadata.Set("tokenizer.ggml.token_type", GgufArray(std::vector<int32_t>{1, 1, 1}));
  EXPECT_THAT(Vocabulary::Create(metadata),
              StatusIs(kInvalid, HasSubstr("'tokenizer.ggml.token_type' has 3 elements, want 2")));
}

TEST(VocabularyTest, WrongElements_NameKeyIndexAndValue) {
  for (const int32_t type : {-1, 7, std::numeric_limits<int32_t>::max()}) {
    EXPECT_THAT(Vocabulary::Create(MakeMetadata("llama", {{"a"}, {"b", 0, type}})),
                StatusIs(kInvalid, HasSubstr("tokenizer.ggml.token_type'[1] = ")));
  }
  EXPECT_THAT(Vocabulary::Create(
                  MakeMetadata("llama", {{"a"}, {"b", std::numeric_limits<float>::quiet_NaN()}})),
              StatusIs(kInvalid, HasSubstr("tokenizer.ggml.scores'[1] is not a number")));
  GgufMetadata metadata = MakeMetadata("llama", {{"a"}});
  metadata.Set("tokenizer.ggml.tokens", std::string("a"));
  EXPECT_THAT(Vocabulary::Create(metadata), StatusIs(kInvalid, HasSubstr("tokenizer.ggml.tokens")));
}

TEST(VocabularyTest, EmptyAndEqualTexts_WarnAndTheLastIsFound) {
  ASSERT_OK_AND_ASSIGN(
      const Vocabulary vocabulary,
      Vocabulary::Create(MakeMetadata("llama", {{"a"}, {""}, {"a"}, {""}, {"b"}})));
  EXPECT_EQ(vocabulary.size(), 5);
  EXPECT_EQ(vocabulary.Find("a"), 2);
  EXPECT_EQ(vocabulary.Find("b"), 4);
  EXPECT_EQ(vocabulary.Find(""), kNoToken);
  EXPECT_EQ(vocabulary.Find("c"), kNoToken);
  EXPECT_THAT(vocabulary.warnings(),
              ElementsAre(HasSubstr("2 tokens of the vocabulary have no text"),
                          HasSubstr("1 tokens have the text of another")));
}

TEST(VocabularyTest, ByteTokens_FoundByNameAndRead) {
  ASSERT_OK_AND_ASSIGN(const Vocabulary vocabulary,
                       Vocabulary::Create(MakeMetadata(
                           "llama", {{"<0x0A>", 0, 6}, {"\x0B"}, {"<0xZZ>", 0, 6}, {"x", 0, 6}})));
  EXPECT_EQ(vocabulary.FindByte(0x0A), 0);
  EXPECT_EQ(vocabulary.FindByte(0x0B), 1);
  EXPECT_EQ(vocabulary.FindByte(0x0C), kNoToken);
  EXPECT_EQ(vocabulary.ByteOf(0), 0x0A);
  EXPECT_EQ(vocabulary.ByteOf(2), -1);
  EXPECT_EQ(vocabulary.ByteOf(3), -1);
}

TEST(VocabularyTest, WithoutTypesAndScores_Defaults) {
  GgufMetadata metadata;
  metadata.Set("tokenizer.ggml.tokens", GgufArray(std::vector<std::string>{"a", "b"}));
  ASSERT_OK_AND_ASSIGN(const Vocabulary vocabulary, Vocabulary::Create(metadata));
  EXPECT_EQ(vocabulary.type(1), TokenType::kNormal);
  EXPECT_EQ(vocabulary.score(1), 0.0f);
}

}  // namespace
}  // namespace weft
