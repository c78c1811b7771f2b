// Seeded mutations of the fuzz corpus, and sizes that would hurt a careless tokenizer. The fuzz
// target goes further; this runs everywhere.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/random.h"
#include "coordinator/tokenizer/tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/coordinator/tokenizer/sample_vocabularies.h"
#include "tests/unit/coordinator/tokenizer/tokenizer_check.h"

namespace weft {
namespace {

std::vector<std::string> ReadCorpus() {
  const char* source = std::getenv("WEFT_SOURCE_DIR");
  EXPECT_NE(source, nullptr) << "run by ctest, or set WEFT_SOURCE_DIR";
  std::vector<std::string> inputs;
  if (source == nullptr) return inputs;
  const auto folder = std::filesystem::path(source) / "tests/fuzz/corpus/tokenizer";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    inputs.push_back(content.str());
  }
  return inputs;
}

void Check(const std::string& input) {
  CheckTokenizer({reinterpret_cast<const uint8_t*>(input.data()), input.size()});
}

std::string Mutate(std::string input, const std::vector<std::string>& corpus, Random* random) {
  const int64_t count = random->Between(1, 6);
  for (int64_t i = 0; i < count && !input.empty(); ++i) {
    const auto place =
        static_cast<size_t>(random->Between(0, static_cast<int64_t>(input.size()) - 1));
    const auto length = static_cast<size_t>(random->Between(1, 12));
    switch (random->Between(0, 4)) {
      case 0:
        input[place] = static_cast<char>(random->Between(0, 255));
        break;
      case 1:
        input.erase(place, length);
        break;
      case 2:
        input.insert(place, input.substr(place, length));
        break;
      case 3: {
        const std::string& other =
            corpus[random->Between(0, static_cast<int64_t>(corpus.size()) - 1)];
        input.insert(place, other.substr(place % other.size(), length));
        break;
      }
      default:
        input.insert(place, std::string(length, input[place]));
    }
  }
  return input;
}

TEST(HostileTokenizerTest, CorpusAndMutations_KeepTheInvariants) {
  const uint64_t seed = 555;
  SCOPED_TRACE(seed);
  Random random(seed);
  const std::vector<std::string> corpus = ReadCorpus();
  ASSERT_GE(corpus.size(), 6u);
  for (const std::string& input : corpus) Check(input);
  for (int round = 0; round < 2000; ++round) {
    const auto pick = random.Between(0, static_cast<int64_t>(corpus.size()) - 1);
    Check(Mutate(corpus[pick], corpus, &random));
  }
}

TEST(HostileTokenizerTest, MillionTokens_LoadAndEncode) {
  std::vector<SampleToken> tokens = {{"<unk>", 0, 2}};
  for (int i = 0; i < 1'000'000; ++i) {
    tokens.push_back({absl::StrCat("t", i), static_cast<float>(i % 7), i % 2 == 0 ? 3 : 1});
  }
  ASSERT_OK_AND_ASSIGN(const auto tokenizer, Tokenizer::Create(MakeMetadata("llama", tokens)));
  EXPECT_EQ(tokenizer->vocabulary_size(), 1'000'001);
  ASSERT_OK_AND_ASSIGN(const auto ids, tokenizer->Encode("t123456t999998", {.add_special = false}));
  EXPECT_THAT(ids, ::testing::ElementsAre(123457, 999999));
}

TEST(HostileTokenizerTest, TokensAsLongAsTheText_StayLinear) {
  // Every text is a prefix of the next: the worst for looking for the longest.
  std::vector<SampleToken> tokens = {{"<unk>", 0, 2}, {"a", 0, 1}};
  for (size_t length = 2; length <= 300; ++length) {
    tokens.push_back({std::string(length, 'a') + "b", 0, 4});
    tokens.push_back({std::string(length, 'a'), -1, 1});
  }
  tokens.push_back({std::string(100'000, 'a'), 0, 1});
  tokens.push_back({std::string(100'000, 'c'), 0, 3});
  ASSERT_OK_AND_ASSIGN(const auto tokenizer, Tokenizer::Create(MakeMetadata("llama", tokens)));
  EXPECT_THAT(tokenizer->warnings(), ::testing::Contains(::testing::HasSubstr("longer than")));
  const std::string text(200'000, 'a');
  ASSERT_OK_AND_ASSIGN(const auto ids, tokenizer->Encode(text, {.add_special = false}));
  std::string decoded = tokenizer->Decode(ids, {.render_special = true});
  // The prefix space has no token here.
  EXPECT_EQ(decoded, "<unk>" + text);
}

TEST(HostileTokenizerTest, SpecialTokensEverywhere_AreAllFound) {
  std::vector<SampleToken> spaces;
  for (size_t length = 1; length <= 30; ++length) {
    spaces.push_back({std::string(length, ' '), 0, 4});
  }
  ASSERT_OK_AND_ASSIGN(const auto tokenizer, Tokenizer::Create(MakeBytePair({}, spaces)));
  const std::string text(300'007, ' ');
  ASSERT_OK_AND_ASSIGN(const auto ids, tokenizer->Encode(text, {}));
  EXPECT_EQ(ids.size(), 10'001u);
  EXPECT_EQ(ids.back(), 256 + 6);
  EXPECT_EQ(tokenizer->Decode(ids, {}), text);
}

}  // namespace
}  // namespace weft
