#include "rpc_backend/protocol/clean_text.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(CleanText, TextOfOneLine_StaysAsItIs) {
  for (const char* text : {"", "plain", "C:\\path 'quoted'", "größer \xE2\x82\xAC"}) {
    EXPECT_TRUE(IsCleanText(text)) << text;
    EXPECT_EQ(CleanText(text, 64), text);
  }
}

TEST(CleanText, ControlCharactersAndBytesThatAreNoText_AreEscaped) {
  EXPECT_FALSE(IsCleanText("two\nlines"));
  EXPECT_FALSE(IsCleanText("\x1B[31m"));
  EXPECT_FALSE(IsCleanText("\x7F"));
  EXPECT_FALSE(IsCleanText("\xC2\x85"));
  EXPECT_FALSE(IsCleanText("\xFF"));
  EXPECT_EQ(CleanText("two\nlines", 64), "two\\nlines");
  EXPECT_EQ(CleanText("\xFF", 64), "\\xff");
}

TEST(CleanText, LongText_IsCutBetweenCharacters) {
  EXPECT_EQ(CleanText("0123456789abcdef", 16), "0123456789abcdef");
  EXPECT_EQ(CleanText("0123456789abcdefg", 16), "0123456789abc...");
  // The cut would fall into the last of these characters of three bytes.
  EXPECT_EQ(CleanText("12\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC", 10), "12\xE2\x82\xAC...");
}

TEST(CleanText, AnyBytes_BecomeCleanTextWithinTheLimit) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text.push_back(static_cast<char>(i * 7));
  for (const int64_t limit : {8, 9, 10, 11, 100, 4096, 10000}) {
    const std::string clean = CleanText(text, limit);
    EXPECT_TRUE(IsCleanText(clean)) << limit;
    EXPECT_LE(clean.size(), static_cast<size_t>(limit));
  }
}

}  // namespace
}  // namespace weft
