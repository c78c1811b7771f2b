// Byte-pair and SentencePiece-style encoding: order of merges against a plain quadratic
// implementation, fallbacks, and how the work grows.
#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "coordinator/tokenizer/byte_pair.h"
#include "coordinator/tokenizer/merge_symbols.h"
#include "coordinator/tokenizer/sentence_piece.h"
#include "coordinator/tokenizer/vocabulary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/tokenizer/sample_vocabularies.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Texts(const Vocabulary& vocabulary, const std::vector<TokenId>& ids) {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (const TokenId id : ids) texts.emplace_back(vocabulary.text(id));
  return texts;
}

std::vector<std::string> EncodeBytePair(const GgufMetadata& metadata, std::string_view word,
                                        bool ignore_merges = false) {
  const auto vocabulary = Vocabulary::Create(metadata);
  EXPECT_OK(vocabulary);
  if (!vocabulary.ok()) return {};
  const auto encoder =
      BytePairEncoder::Create(metadata, *vocabulary, {.ignore_merges = ignore_merges});
  EXPECT_OK(encoder);
  if (!encoder.ok()) return {};
  std::vector<TokenId> ids;
  EXPECT_OK(encoder->Encode(word, &ids, nullptr));
  return Texts(*vocabulary, ids);
}

std::vector<std::string> EncodeSentencePiece(const GgufMetadata& metadata, std::string_view text) {
  const auto vocabulary = Vocabulary::Create(metadata);
  EXPECT_OK(vocabulary);
  if (!vocabulary.ok()) return {};
  std::vector<TokenId> ids;
  EXPECT_OK(SentencePieceEncoder(*vocabulary, 0).Encode(text, &ids, nullptr));
  return Texts(*vocabulary, ids);
}

TEST(BytePairTest, LowestRankFirst_ThenLeftmost) {
  const GgufMetadata metadata = MakeBytePair({"b c", "a b", "a a", "bc d"});
  EXPECT_THAT(EncodeBytePair(metadata, "abcd"), ElementsAre("a", "bcd"));
  EXPECT_THAT(EncodeBytePair(metadata, "aab"), ElementsAre("a", "ab"));
  EXPECT_THAT(EncodeBytePair(metadata, "aaaaa"), ElementsAre("aa", "aa", "a"));
}

TEST(BytePairTest, PairListedTwice_KeepsItsFirstRank) {
  const GgufMetadata metadata = MakeBytePair({"a b", "b c", "a b"});
  EXPECT_THAT(EncodeBytePair(metadata, "abc"), ElementsAre("ab", "c"));
}

TEST(BytePairTest, MergedTextWithoutToken_FallsBackToBytes) {
  GgufMetadata metadata = MakeBytePair({});
  metadata.Set("tokenizer.ggml.merges", GgufArray(std::vector<std::string>{"a b"}));
  EXPECT_THAT(EncodeBytePair(metadata, "xab"), ElementsAre("x", "a", "b"));
}

TEST(BytePairTest, IgnoreMerges_TakesWholeWords) {
  const GgufMetadata metadata = MakeBytePair({"a b"}, {{"abc"}});
  EXPECT_THAT(EncodeBytePair(metadata, "abc"), ElementsAre("ab", "c"));
  EXPECT_THAT(EncodeBytePair(metadata, "abc", /*ignore_merges=*/true), ElementsAre("abc"));
}

TEST(BytePairTest, BadMerges_AreErrorsThatNameTheElement) {
  for (const char* merge : {"", "ab", "a ", " ", "abc "}) {
    GgufMetadata metadata = MakeBytePair({});
    metadata.Set("tokenizer.ggml.merges", GgufArray(std::vector<std::string>{"a b", merge}));
    ASSERT_OK_AND_ASSIGN(const Vocabulary vocabulary, Vocabulary::Create(metadata));
    EXPECT_THAT(
        BytePairEncoder::Create(metadata, vocabulary, {}),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tokenizer.ggml.merges'[1]")))
        << merge;
  }
}

TEST(BytePairTest, SpaceAtTheStart_BelongsToTheLeftText) {
  GgufMetadata metadata = MakeBytePair({});
  metadata.Set("tokenizer.ggml.merges", GgufArray(std::vector<std::string>{"  b", " a b"}));
  ASSERT_OK_AND_ASSIGN(const Vocabulary vocabulary, Vocabulary::Create(metadata));
  EXPECT_OK(BytePairEncoder::Create(metadata, vocabulary, {}));
}

TEST(BytePairTest, ByteWithoutToken_UnknownOrError) {
  const GgufMetadata metadata = MakeMetadata("gpt2", {{"a"}, {"?"}});
  ASSERT_OK_AND_ASSIGN(const Vocabulary vocabulary, Vocabulary::Create(metadata));
  ASSERT_OK_AND_ASSIGN(const auto strict, BytePairEncoder::Create(metadata, vocabulary, {}));
  std::vector<TokenId> ids;
  EXPECT_THAT(strict.Encode("ab", &ids, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0x62")));
  ASSERT_OK_AND_ASSIGN(const auto lenient,
                       BytePairEncoder::Create(metadata, vocabulary, {.unknown = 1}));
  ids.clear();
  EXPECT_OK(lenient.Encode("ab", &ids, nullptr));
  EXPECT_THAT(ids, ElementsAre(0, 1));
}

TEST(SentencePieceTest, HighestScoreFirst_ThenLeftmost) {
  const GgufMetadata metadata = MakeSentencePiece({"bc", "ab", "aa", "a", "b", "c"});
  EXPECT_THAT(EncodeSentencePiece(metadata, "abc"), ElementsAre("a", "bc"));
  EXPECT_THAT(EncodeSentencePiece(metadata, "aaa"), ElementsAre("aa", "a"));
}

TEST(SentencePieceTest, EqualScores_LeftmostFirst) {
  const GgufMetadata metadata =
      MakeSentencePiece({}, {{"a", 0}, {"b", 0}, {"c", 0}, {"bc", -1}, {"ab", -1}});
  EXPECT_THAT(EncodeSentencePiece(metadata, "abc"), ElementsAre("ab", "c"));
}

TEST(SentencePieceTest, UnknownCharacter_BecomesBytes) {
  const GgufMetadata metadata = MakeSentencePiece({"a"});
  EXPECT_THAT(EncodeSentencePiece(metadata, "a\xC3\xA9"), ElementsAre("a", "<0xC3>", "<0xA9>"));
  EXPECT_THAT(EncodeSentencePiece(metadata, "\xF0\x9F"), ElementsAre("<0xF0>", "<0x9F>"));
}

TEST(SentencePieceTest, ByteAsItsOwnToken_IsUsedWithoutByteTokens) {
  const GgufMetadata metadata = MakeMetadata("llama", {{"<unk>", 0, 2}, {"a"}, {"\xC3"}, {"\xA9"}});
  EXPECT_THAT(EncodeSentencePiece(metadata, "a\xC3\xA9"), ElementsAre("a", "\xC3", "\xA9"));
}

TEST(SentencePieceTest, CharacterWithoutTokenOrBytes_UnknownOrError) {
  const GgufMetadata metadata = MakeMetadata("llama", {{"<unk>", 0, 2}, {"a"}});
  EXPECT_THAT(EncodeSentencePiece(metadata, "a\xC3\xA9"), ElementsAre("a", "<unk>"));
  ASSERT_OK_AND_ASSIGN(const Vocabulary vocabulary, Vocabulary::Create(metadata));
  std::vector<TokenId> ids;
  EXPECT_THAT(SentencePieceEncoder(vocabulary, kNoToken).Encode("b", &ids, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'b'")));
}

// The definition of merging, without a queue: look at all pairs, join the best, repeat.
std::vector<std::string> MergePlainly(
    std::vector<std::string> parts,
    const std::function<std::optional<float>(const std::string&, const std::string&)>& rank_of) {
  while (true) {
    size_t best = 0;
    std::optional<float> best_rank;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::optional<float> rank = rank_of(parts[i], parts[i + 1]);
      if (!rank.has_value() || (best_rank.has_value() && *rank >= *best_rank)) continue;
      best = i;
      best_rank = rank;
    }
    if (!best_rank.has_value()) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

std::string RandomLetters(Random* random, int64_t low, int64_t high) {
  std::string text;
  const int64_t length = random->Between(low, high);
  for (int64_t i = 0; i < length; ++i) text += static_cast<char>('a' + random->Between(0, 2));
  return text;
}

std::vector<std::string> Letters(const std::string& text) {
  std::vector<std::string> letters;
  for (const char letter : text) letters.emplace_back(1, letter);
  return letters;
}

TEST(BytePairTest, RandomMerges_SameAsThePlainDefinition) {
  const uint64_t seed = 99;
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::string> merges;
    merges.reserve(15);
    for (int i = 0; i < 15; ++i) {
      merges.push_back(
          absl::StrCat(RandomLetters(&random, 1, 3), " ", RandomLetters(&random, 1, 3)));
    }
    const GgufMetadata metadata = MakeBytePair(merges);
    const auto rank_of = [&](const std::string& left,
                             const std::string& right) -> std::optional<float> {
      const auto found = std::find(merges.begin(), merges.end(), absl::StrCat(left, " ", right));
      if (found == merges.end()) return std::nullopt;
      return static_cast<float>(found - merges.begin());
    };
    for (int i = 0; i < 10; ++i) {
      const std::string word = RandomLetters(&random, 0, 25);
      EXPECT_EQ(EncodeBytePair(metadata, word), MergePlainly(Letters(word), rank_of)) << word;
    }
  }
}

TEST(SentencePieceTest, RandomScores_SameAsThePlainDefinition) {
  const uint64_t seed = 100;
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 100; ++round) {
    std::vector<SampleToken> tokens = {{"a", 0}, {"b", 0}, {"c", 0}};
    // Few distinct scores, so that ties are common.
    for (int i = 0; i < 20; ++i) {
      const std::string text = RandomLetters(&random, 2, 5);
      const bool is_new = std::none_of(tokens.begin(), tokens.end(), [&](const SampleToken& token) {
        return token.text == text;
      });
      if (is_new) tokens.push_back({text, static_cast<float>(-random.Between(0, 4))});
    }
    const GgufMetadata metadata = MakeSentencePiece({}, tokens);
    const auto rank_of = [&](const std::string& left,
                             const std::string& right) -> std::optional<float> {
      for (const SampleToken& token : tokens) {
        if (token.text == left + right) return -token.score;
      }
      return std::nullopt;
    };
    for (int i = 0; i < 10; ++i) {
      const std::string text = RandomLetters(&random, 0, 25);
      EXPECT_EQ(EncodeSentencePiece(metadata, text), MergePlainly(Letters(text), rank_of)) << text;
    }
  }
}

// Merges of runs of one letter up to 64.
std::vector<std::string> RunMerges() {
  std::vector<std::string> merges;
  for (size_t length = 1; length <= 32; length *= 2) {
    merges.push_back(absl::StrCat(std::string(length, 'a'), " ", std::string(length, 'a')));
  }
  return merges;
}

TEST(MergeWorkTest, OneLetter_QueueOperationsAreBoundedByTheLength) {
  const GgufMetadata byte_pair_metadata = MakeBytePair(RunMerges());
  ASSERT_OK_AND_ASSIGN(const Vocabulary byte_pair_vocabulary,
                       Vocabulary::Create(byte_pair_metadata));
  ASSERT_OK_AND_ASSIGN(const auto byte_pair,
                       BytePairEncoder::Create(byte_pair_metadata, byte_pair_vocabulary, {}));
  const GgufMetadata piece_metadata =
      MakeSentencePiece({"aa", "aaaa", "aaaaaaaa", "aaaaaaaaaaaaaaaa", "a", "aaa"});
  ASSERT_OK_AND_ASSIGN(const Vocabulary piece_vocabulary, Vocabulary::Create(piece_metadata));
  const SentencePieceEncoder sentence_piece(piece_vocabulary, 0);
  for (const int64_t length : {1000, 100'000, 1'000'000}) {
    const std::string text(length, 'a');
    std::vector<TokenId> ids;
    int64_t work = 0;
    EXPECT_OK(byte_pair.Encode(text, &ids, &work));
    EXPECT_EQ(static_cast<int64_t>(ids.size()),
              length / 64 + std::popcount(static_cast<uint64_t>(length % 64)));
    // Each symbol starts one entry, each of at most n merges adds two, and each entry is taken out
    // once.
    EXPECT_LE(work, 6 * length);
    EXPECT_GE(work, length);
    work = 0;
    EXPECT_OK(sentence_piece.Encode(text, &ids, &work));
    EXPECT_LE(work, 6 * length);
  }
}

}  // namespace
}  // namespace weft
