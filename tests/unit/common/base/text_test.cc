// UTF-8 checks and text made fit for messages.
#include <string>

#include "common/base/absl_view.h"
#include "common/base/escaped_text.h"
#include "common/base/utf8.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

// Encodes without regard to what is allowed, by the number of bytes.
std::string Encode(uint32_t code, int length) {
  if (length == 1) return std::string(1, static_cast<char>(code));
  std::string text;
  for (int i = 1; i < length; ++i) {
    text.insert(text.begin(), static_cast<char>(0x80 | (code & 0x3F)));
    code >>= 6;
  }
  const int marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
  return static_cast<char>(marks[length] | code) + text;
}

TEST(Utf8, EveryCodePoint_IsAcceptedInItsShortestFormOnly) {
  for (uint32_t code = 0; code <= 0x1FFFFF; ++code) {
    const int shortest = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    const bool allowed = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    for (int length = shortest; length <= 4; ++length) {
      const bool good = allowed && length == shortest;
      ASSERT_EQ(IsUtf8(Encode(code, length)), good) << code << " in " << length << " bytes";
    }
  }
}

TEST(Utf8, BrokenSequences_AreRefused) {
  for (const char* text : {"\x80", "\xBF", "\xC2", "\xE2\x82", "\xF0\x9F\x98", "\xF5\x80\x80\x80",
                           "\xFF", "\xFE", "a\xC2z", "\xE2\x28\xA1"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8(std::string_view("\0", 1)));
  EXPECT_EQ(Utf8SequenceLength("\u00e9x"), 2u);
  EXPECT_EQ(Utf8SequenceLength(""), 0u);
}

TEST(EscapedText, ControlsAndBadBytes_AreEscaped) {
  EXPECT_EQ(EscapedText("plain \u00e9\u20ac", 80), "plain \u00e9\u20ac");
  EXPECT_EQ(EscapedText("a\n\r\t\\", 80), "a\\n\\r\\t\\\\");
  EXPECT_EQ(EscapedText(std::string_view("\x1B\0\x7F\xFF", 4), 80), "\\x1b\\x00\\x7f\\xff");
  EXPECT_EQ(EscapedText("\u009b", 80), "\\xc2\\x9b");  // a control sequence introducer
}

TEST(EscapedText, LongText_IsCutBetweenCharacters) {
  EXPECT_EQ(EscapedText("abcdef", 6), "abcdef");
  EXPECT_EQ(EscapedText("abcdefg", 6), "abcdef...");
  EXPECT_EQ(EscapedText("ab\u20ac", 4), "ab...");
  EXPECT_EQ(EscapedText("ab\u20ac", 5), "ab\u20ac");
  EXPECT_EQ(EscapedText("x", 0), "...");
}

TEST(AbslView, BothWays_KeepTheCharacters) {
  const std::string text("a\0b", 3);
  EXPECT_EQ(StdView(AbslView(text)), text);
  EXPECT_EQ(AbslView(text).size(), 3u);
}

}  // namespace
}  // namespace weft
