#include "coordinator/sampling/dry.h"

#include <cmath>
#include <map>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

DryOptions On() {
  DryOptions options;
  options.multiplier = 1;
  options.base = 2;
  return options;
}

TEST(Dry, RepeatedEnd_PenalisesWhatFollowedIt) {
  // "1 2 3 . 1 2 3": 9 would repeat four tokens, of which three stand; 2^(3-2).
  EXPECT_THAT(FindDryPenalties(On(), nullptr, {1, 2, 3, 9, 1, 2, 3}),
              ElementsAre(DryPenalty{9, 2}));
  // The longest repetition counts: 5 follows "2 3" and "1 2 3".
  EXPECT_THAT(FindDryPenalties(On(), nullptr, {2, 3, 5, 1, 2, 3, 5, 8, 1, 2, 3}),
              ElementsAre(DryPenalty{5, 2}));
  EXPECT_THAT(FindDryPenalties(On(), nullptr, {1, 9, 1}), IsEmpty());
  EXPECT_THAT(FindDryPenalties(On(), nullptr, {}), IsEmpty());
  EXPECT_THAT(FindDryPenalties(On(), nullptr, {4, 4, 4, 4}), ElementsAre(DryPenalty{4, 2}));
}

TEST(Dry, Breaker_CutsTheRepetition) {
  DryBreakers breakers;
  breakers.Add({2});
  EXPECT_THAT(FindDryPenalties(On(), &breakers, {1, 2, 3, 9, 1, 2, 3}), IsEmpty());
  EXPECT_THAT(FindDryPenalties(On(), &breakers, {2, 3, 4, 9, 2, 3, 4}),
              ElementsAre(DryPenalty{9, 1}));
  DryBreakers pair;
  pair.Add({1, 2});
  EXPECT_EQ(pair.TokensSince({5, 1, 2, 6, 7}), 2);
  EXPECT_EQ(pair.TokensSince({5, 1, 6, 2, 7}), 5);
  EXPECT_EQ(pair.TokensSince({5, 1, 2}), 0);
  EXPECT_EQ(pair.TokensSince({5, 1}), 2);
}

TEST(Dry, LongRepetition_IsBounded) {
  const std::vector<int32_t> text(5000, 3);
  EXPECT_THAT(FindDryPenalties(On(), nullptr, text), ElementsAre(DryPenalty{3, 1e9f}));
}

// Against all pairs of positions.
TEST(Dry, RandomTexts_AsByTheDefinition) {
  Random random(TestSeed(31));
  for (uint64_t i = 0; i < TestCount(500); ++i) {
    std::vector<int32_t> text(random.Between(0, 40));
    for (int32_t& token : text) token = static_cast<int32_t>(random.Between(0, 3));
    DryOptions options = On();
    options.allowed_length = static_cast<int32_t>(random.Between(1, 3));
    DryBreakers breakers;
    if (random.Between(0, 1) == 0) breakers.Add({3, 3});
    const size_t limit = breakers.TokensSince(text);
    std::map<int32_t, size_t> longest;
    for (size_t end = 1; end < text.size(); ++end) {
      size_t length = 0;
      while (length < end && text[end - 1 - length] == text[text.size() - 1 - length]) ++length;
      length = std::min(length, limit);
      if (length >= static_cast<size_t>(options.allowed_length)) {
        longest[text[end]] = std::max(longest[text[end]], length);
      }
    }
    std::vector<DryPenalty> want;
    for (const auto& [id, length] : longest) {
      want.push_back({id, std::exp2(static_cast<float>(length) - options.allowed_length)});
    }
    EXPECT_EQ(FindDryPenalties(options, &breakers, text), want);
  }
}

// Tokens 0 to 255 are bytes, then some words.
DryVocabulary TestVocabulary() {
  static constexpr std::array<std::string_view, 6> kWords = {"a\n", "\nUs", "er", ":", "x:y", "\n"};
  DryVocabulary vocabulary;
  vocabulary.size = 256 + static_cast<int32_t>(kWords.size());
  vocabulary.piece = [](int32_t id) {
    return id < 256 ? std::string(1, static_cast<char>(id)) : std::string(kWords[id - 256]);
  };
  vocabulary.encode = [](std::string_view text) -> absl::StatusOr<std::vector<int32_t>> {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
    return ids;
  };
  return vocabulary;
}

TEST(DryBreakers, Strings_AreFoundWhereverTokensCutThem) {
  ASSERT_OK_AND_ASSIGN(const DryBreakers colon, ResolveDryBreakers({":"}, TestVocabulary()));
  EXPECT_EQ(colon.TokensSince({1, 260, 2}), 1);
  EXPECT_EQ(colon.TokensSince({1, ':', 2, 3}), 2);
  EXPECT_EQ(colon.TokensSince({1, 256, 2, 3}), 4);
  ASSERT_OK_AND_ASSIGN(const DryBreakers user, ResolveDryBreakers({"\nU"}, TestVocabulary()));
  EXPECT_EQ(user.TokensSince({1, 257, 2}), 1);
  EXPECT_EQ(user.TokensSince({1, 256, 'U', 2}), 1);
  EXPECT_EQ(user.TokensSince({1, '\n', 'U', 2}), 1);
  EXPECT_EQ(user.TokensSince({1, '\n', 'V', 2}), 4);
}

TEST(DryBreakers, BadStrings_AreErrors) {
  EXPECT_THAT(ResolveDryBreakers({""}, TestVocabulary()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dry-sequence-breaker")));
  EXPECT_THAT(ResolveDryBreakers({std::string(41, 'x')}, TestVocabulary()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("41 bytes")));
  EXPECT_THAT(ResolveDryBreakers(std::vector<std::string>(65, "x"), TestVocabulary()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("65 strings")));
}

}  // namespace
}  // namespace weft
