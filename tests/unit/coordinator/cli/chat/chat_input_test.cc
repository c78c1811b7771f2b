// Lines and what they mean; what a terminal gets to see; where lines are kept.
#include "coordinator/cli/chat/chat_input.h"

#include <sys/stat.h>

#include <fstream>
#include <string>

#include "coordinator/cli/chat/history_file.h"
#include "coordinator/cli/chat/terminal_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using testing::HasSubstr;
using Kind = ChatInput::Kind;

TEST(ChatInput, CommandsAndMessages) {
  struct Case {
    const char* line;
    Kind kind;
    const char* text;
  };
  const Case cases[] = {{"", Kind::kEmpty, ""},
                        {" \t ", Kind::kEmpty, ""},
                        {"  Hello, you ", Kind::kMessage, "Hello, you"},
                        {"a /reset", Kind::kMessage, "a /reset"},
                        {"/reset", Kind::kReset, ""},
                        {" /reset ", Kind::kReset, ""},
                        {"/reset now", Kind::kUnknown, "/reset now"},
                        {"/RESET", Kind::kUnknown, "/RESET"},
                        {"/save", Kind::kSave, ""},
                        {"/save a file.json ", Kind::kSave, "a file.json"},
                        {"/save\ta", Kind::kSave, "a"},
                        {"/saved", Kind::kUnknown, "/saved"},
                        {"/help", Kind::kHelp, ""},
                        {"/quit", Kind::kQuit, ""},
                        {"/exit", Kind::kQuit, ""},
                        {"/", Kind::kUnknown, "/"},
                        {"/ reset", Kind::kUnknown, "/ reset"},
                        {"//etc is a folder", Kind::kMessage, "/etc is a folder"}};
  for (const Case& c : cases) {
    const ChatInput input = ParseChatInput(c.line);
    EXPECT_EQ(input.kind, c.kind) << c.line;
    EXPECT_EQ(input.text, c.text) << c.line;
  }
}

TEST(TerminalText, OrdinaryTextStays) {
  const std::string text = "Grüße,\n\tÿ \u00A0 Ω 漢字 \U0001F600 a\u0301 \u202F \u2065 \u206A";
  EXPECT_EQ(TerminalText(text), text);
  EXPECT_EQ(TerminalText(""), "");
}

TEST(TerminalText, WhatATerminalObeysIsShown) {
  EXPECT_EQ(TerminalText("\x1b[31mred\x1b]0;title\x07"), "\u241B[31mred\u241B]0;title\u2407");
  EXPECT_EQ(TerminalText("a\r\b\x7f"), "a\u240D\u2408\u2421");
  EXPECT_EQ(TerminalText(std::string_view("\0", 1)), "\u2400");
  // CSI and OSC in one character each, and the ends of their range.
  EXPECT_EQ(TerminalText("\u009B31m\u009D\u0080\u009F\u00A0"), "\uFFFD31m\uFFFD\uFFFD\uFFFD\u00A0");
  EXPECT_EQ(TerminalText("a\u202Eb\u2066c\u202A\u2069"), "a\uFFFDb\uFFFDc\uFFFD\uFFFD");
  // A byte that such terminals read alone.
  EXPECT_EQ(TerminalText("\x9b"
                         "1m"),
            "\uFFFD"
            "1m");
}

TEST(TerminalText, NoBytePairGetsThrough) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string shown =
          TerminalText(std::string{static_cast<char>(first), static_cast<char>(second)});
      for (size_t i = 0; i < shown.size(); ++i) {
        const auto byte = static_cast<unsigned char>(shown[i]);
        ASSERT_TRUE(byte >= 0x20 || byte == '\n' || byte == '\t') << first << " " << second;
        ASSERT_NE(byte, 0x7F);
        const bool c1 = byte == 0xC2 && static_cast<unsigned char>(shown[i + 1]) < 0xA0;
        ASSERT_FALSE(c1) << first << " " << second;
      }
    }
  }
}

TEST(HistoryFile, IsBelowTheStateFolder) {
  EXPECT_EQ(HistoryPath("/state", "/users/me"), "/state/weft/chat_history");
  EXPECT_EQ(HistoryPath("", "/users/me"), "/users/me/.local/state/weft/chat_history");
  EXPECT_EQ(HistoryPath("relative", "/users/me"), "/users/me/.local/state/weft/chat_history");
  EXPECT_EQ(HistoryPath("", ""), "");
  EXPECT_EQ(HistoryPath("", "home"), "");
}

TEST(HistoryFile, BelongsToTheUserAlone) {
  const TemporaryFolder folder;
  const std::string path = folder.File("a/b/chat_history");
  ASSERT_OK(PrepareHistoryFile(path));
  struct stat status = {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  ASSERT_EQ(stat(folder.File("a/b").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
  // One that is there keeps what is in it, and nobody else reads it any longer.
  std::ofstream(path) << "old\n";
  chmod(path.c_str(), 0644);
  ASSERT_OK(PrepareHistoryFile(path));
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  EXPECT_EQ(status.st_size, 4);
  EXPECT_FALSE(PrepareHistoryFile(folder.File("a/b")).ok());
  EXPECT_THAT(PrepareHistoryFile(path + "/below").message(), HasSubstr("chat_history"));
}

}  // namespace
}  // namespace weft
