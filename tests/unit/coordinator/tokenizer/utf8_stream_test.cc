#include "coordinator/tokenizer/utf8_stream.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "common/base/random.h"
#include "coordinator/tokenizer/utf8.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

constexpr char kBad[] = "\xEF\xBF\xBD";

TEST(Utf8StreamTest, CharacterInParts_ComesWhenComplete) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Append("a\xF0"), "a");
  EXPECT_EQ(stream.Append("\x9F"), "");
  EXPECT_EQ(stream.Append("\x98"), "");
  EXPECT_EQ(stream.Append("\x80!"), "\xF0\x9F\x98\x80!");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(Utf8StreamTest, EndWithinCharacter_OneReplacement) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Append("\xE4\xB8"), "");
  EXPECT_EQ(stream.Finish(), kBad);
  EXPECT_EQ(stream.Append("b"), "b");
}

TEST(Utf8StreamTest, LeadByteAfterUnfinishedCharacter_ReplacesThePrefixOnly) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Append("\xE4\xB8"), "");
  EXPECT_EQ(stream.Append("\xC3\xA9"), std::string(kBad) + "\xC3\xA9");
}

// The outputs of Python's bytes.decode("utf-8", "replace").
TEST(Utf8StreamTest, InvalidBytes_OneReplacementForEachMaximalPrefix) {
  const struct {
    const char* bytes;
    int bad_count;
    const char* rest;
  } cases[] = {{"\xFF\xFEx", 2, "x"},      {"\x80x", 1, "x"},         {"\xC0\xAFx", 2, "x"},
               {"\xE0\x80\x80x", 3, "x"},  {"\xED\xA0\x80x", 3, "x"}, {"\xF4\x90\x80\x80x", 4, "x"},
               {"\xF0\x9F\x98x", 1, "x"},  {"\xF1\x80x", 1, "x"},     {"\xE1\x80x", 1, "x"},
               {"\xF5\x80\x80\x80", 4, ""}};
  for (const auto& row : cases) {
    std::string wanted;
    for (int i = 0; i < row.bad_count; ++i) wanted += kBad;
    EXPECT_EQ(ReplaceInvalidUtf8(row.bytes), wanted + row.rest);
  }
}

TEST(Utf8StreamTest, RandomBytesInRandomCuts_SameTextAlwaysValid) {
  const uint64_t seed = 4711;
  SCOPED_TRACE(seed);
  Random random(seed);
  const uint8_t edges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2,
                           0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF};
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    const int64_t length = random.Between(0, 20);
    for (int64_t i = 0; i < length; ++i) {
      bytes += static_cast<char>(edges[random.Between(0, std::size(edges) - 1)]);
    }
    Utf8Stream stream;
    std::string text;
    size_t appended = 0;
    while (appended < bytes.size()) {
      const auto count = static_cast<size_t>(random.Between(0, 5));
      const std::string part = stream.Append(std::string_view(bytes).substr(appended, count));
      appended = std::min(appended + count, bytes.size());
      EXPECT_TRUE(IsValidUtf8(part));
      text += part;
    }
    text += stream.Finish();
    EXPECT_EQ(text, ReplaceInvalidUtf8(bytes));
    EXPECT_TRUE(IsValidUtf8(text));
    EXPECT_EQ(text == bytes, IsValidUtf8(bytes));
  }
}

TEST(Utf8Test, EveryCodePoint_RoundTrips) {
  for (char32_t code_point = 0; code_point < 0x110000; ++code_point) {
    std::string text;
    AppendUtf8(code_point, &text);
    const Utf8Character character = DecodeUtf8(text, 0);
    if (code_point >= 0xD800 && code_point < 0xE000) {
      ASSERT_EQ(character.kind, Utf8Kind::kInvalid) << static_cast<uint32_t>(code_point);
      continue;
    }
    ASSERT_EQ(character.kind, Utf8Kind::kValid) << static_cast<uint32_t>(code_point);
    ASSERT_EQ(character.code_point, code_point);
    ASSERT_EQ(character.bytes, static_cast<int>(text.size()));
  }
}

}  // namespace
}  // namespace weft
