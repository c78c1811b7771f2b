#include "coordinator/cli/synth/synth_tokenizer.h"

#include <memory>
#include <set>
#include <string>

#include "coordinator/tokenizer/tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using testing::HasSubstr;

TEST(SynthVocabulary, EverySize_IsConsistent) {
  for (const int64_t size : {kSmallestSynthVocabulary, int64_t{260}, int64_t{285}, int64_t{286},
                             int64_t{600}, int64_t{961}, int64_t{32000}, int64_t{128256}}) {
    SCOPED_TRACE(testing::Message() << "size " << size);
    ASSERT_OK_AND_ASSIGN(const SynthVocabulary vocabulary, MakeSynthVocabulary(size));
    ASSERT_EQ(vocabulary.tokens.size(), static_cast<size_t>(size));
    ASSERT_EQ(vocabulary.merges.size(), static_cast<size_t>(size) - 259);
    std::set<std::string> known;
    for (int i = 0; i < 256; ++i) known.insert(vocabulary.tokens[static_cast<size_t>(i)]);
    for (size_t i = 0; i < vocabulary.merges.size(); ++i) {
      const std::string& merge = vocabulary.merges[i];
      const size_t space = merge.find(' ');
      ASSERT_NE(space, std::string::npos);
      const std::string left = merge.substr(0, space);
      const std::string right = merge.substr(space + 1);
      ASSERT_TRUE(known.contains(left)) << merge;
      ASSERT_TRUE(known.contains(right)) << merge;
      ASSERT_EQ(vocabulary.tokens[256 + i], left + right);
      ASSERT_TRUE(known.insert(left + right).second) << "twice: " << merge;
    }
    EXPECT_EQ(vocabulary.tokens[static_cast<size_t>(vocabulary.end_of_text_id)], "<|endoftext|>");
    EXPECT_EQ(vocabulary.tokens[static_cast<size_t>(vocabulary.message_start_id)], "<|im_start|>");
    EXPECT_EQ(vocabulary.tokens[static_cast<size_t>(vocabulary.message_end_id)], "<|im_end|>");
  }
}

TEST(SynthVocabulary, LargestSize_HasAllMerges) {
  ASSERT_OK_AND_ASSIGN(const SynthVocabulary vocabulary,
                       MakeSynthVocabulary(kLargestSynthVocabulary));
  EXPECT_EQ(vocabulary.tokens.size(), static_cast<size_t>(kLargestSynthVocabulary));
}

TEST(SynthVocabulary, SizeOutOfRange_IsRefused) {
  for (const int64_t size :
       {int64_t{-1}, kSmallestSynthVocabulary - 1, kLargestSynthVocabulary + 1}) {
    EXPECT_THAT(MakeSynthVocabulary(size),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not within 259 to")));
  }
}

TEST(SynthVocabulary, Tokenizer_EncodesAnyTextAndBack) {
  for (const int64_t size : {kSmallestSynthVocabulary, int64_t{1000}, int64_t{32000}}) {
    SCOPED_TRACE(testing::Message() << "size " << size);
    ASSERT_OK_AND_ASSIGN(const SynthVocabulary vocabulary, MakeSynthVocabulary(size));
    GgufMetadata metadata;
    ASSERT_OK(AddTokenizerMetadata(vocabulary, &metadata));
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Create(metadata));
    EXPECT_TRUE(tokenizer->warnings().empty());
    EXPECT_EQ(tokenizer->vocabulary_size(), size);
    EXPECT_EQ(tokenizer->eos(), vocabulary.message_end_id);
    EXPECT_FALSE(tokenizer->adds_bos());
    EXPECT_TRUE(tokenizer->IsEndOfGeneration(static_cast<TokenId>(vocabulary.message_end_id)));
    const std::string text =
        "The cat's hat,  12 \xC3\xBC\xE2\x98\x83\xF0\x9F\x98\x80\n\tthere! \x01";
    ASSERT_OK_AND_ASSIGN(const std::vector<TokenId> ids, tokenizer->Encode(text, {}));
    EXPECT_EQ(tokenizer->Decode(ids, {}), text);
    ASSERT_OK_AND_ASSIGN(const std::vector<TokenId> control,
                         tokenizer->Encode("<|im_start|>user<|im_end|>", {}));
    EXPECT_EQ(control.front(), vocabulary.message_start_id);
    EXPECT_EQ(control.back(), vocabulary.message_end_id);
  }
}

TEST(SynthVocabulary, CommonWords_AreFewTokens) {
  ASSERT_OK_AND_ASSIGN(const SynthVocabulary vocabulary, MakeSynthVocabulary(32000));
  GgufMetadata metadata;
  ASSERT_OK(AddTokenizerMetadata(vocabulary, &metadata));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Create(metadata));
  const std::string text = " the rain in spain stays mainly in the plain";
  ASSERT_OK_AND_ASSIGN(const std::vector<TokenId> ids, tokenizer->Encode(text, {}));
  EXPECT_LE(ids.size(), text.size() / 2);
}

}  // namespace
}  // namespace weft
