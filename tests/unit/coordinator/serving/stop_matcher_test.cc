#include "coordinator/serving/stop_matcher.h"

#include <string>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

TEST(StopMatcher, StopText_IsNotPartOfTheText) {
  StopMatcher matcher({"\n\n", "END"});
  EXPECT_EQ(matcher.Append("one\ntwo E"), "one\ntwo ");
  EXPECT_EQ(matcher.Append("N"), "");
  EXPECT_EQ(matcher.Append("ough EN"), "ENough ");
  EXPECT_FALSE(matcher.found());
  EXPECT_EQ(matcher.Append("D of text"), "");
  EXPECT_TRUE(matcher.found());
  EXPECT_EQ(matcher.Append("more"), "");
  EXPECT_EQ(matcher.Finish(), "");
}

TEST(StopMatcher, WhatWasHeldBack_ComesAtTheEnd) {
  StopMatcher matcher({"stop"});
  EXPECT_EQ(matcher.Append("a st"), "a ");
  EXPECT_EQ(matcher.Finish(), "st");
}

TEST(StopMatcher, EmptyTexts_AreLeftOut) {
  StopMatcher matcher({"", ""});
  EXPECT_EQ(matcher.Append("text"), "text");
  EXPECT_FALSE(matcher.found());
}

// However the text is cut, what comes out is all before the first stop text.
TEST(StopMatcher, RandomTexts_AsIfTheyCameWhole) {
  Random random(TestSeed(1));
  for (int round = 0; round < 2000; ++round) {
    const auto word = [&](int64_t longest) {
      std::string text;
      for (int64_t i = random.Between(1, longest); i > 0; --i) {
        text += static_cast<char>('a' + random.Between(0, 2));
      }
      return text;
    };
    const std::string text = word(30);
    std::vector<std::string> stops;
    for (int64_t i = random.Between(0, 3); i > 0; --i) stops.push_back(word(4));
    std::string want = text;
    bool stopped = false;
    for (size_t length = 1; length <= text.size() && !stopped; ++length) {
      for (const std::string& stop : stops) {
        const std::string_view begin = std::string_view(text).substr(0, length);
        if (!begin.ends_with(stop)) continue;
        stopped = true;
        want.resize(std::min(want.size(), length - stop.size()));
      }
    }

    StopMatcher matcher(stops);
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const auto count = static_cast<size_t>(random.Between(1, 5));
      out += matcher.Append(text.substr(at, count));
      at += count;
    }
    out += matcher.Finish();
    EXPECT_EQ(out, want);
    EXPECT_EQ(matcher.found(), stopped);
  }
}

}  // namespace
}  // namespace weft
