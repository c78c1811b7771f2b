#include "coordinator/tokenizer/byte_alphabet.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(ByteAlphabetTest, EveryByte_HasItsOwnCharacterAndComesBack) {
  std::set<char32_t> characters;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t character = ByteToCharacter(static_cast<uint8_t>(byte));
    EXPECT_TRUE(characters.insert(character).second) << byte;
    EXPECT_EQ(CharacterToByte(character), byte);
  }
}

TEST(ByteAlphabetTest, KnownCharacters) {
  EXPECT_EQ(ByteToCharacter('A'), U'A');
  EXPECT_EQ(ByteToCharacter(0x00), 0x100u);
  EXPECT_EQ(ByteToCharacter('\n'), 0x10Au);
  EXPECT_EQ(ByteToCharacter(' '), 0x120u);
  EXPECT_EQ(ByteToCharacter(0x7F), 0x121u);
  EXPECT_EQ(ByteToCharacter(0xA0), 0x142u);
  EXPECT_EQ(ByteToCharacter(0xAD), 0x143u);
  EXPECT_EQ(ByteToCharacter(0xFF), 0xFFu);
}

TEST(ByteAlphabetTest, CharactersOutside_AreNoByteAndStayInText) {
  EXPECT_FALSE(CharacterToByte(0x144).has_value());
  EXPECT_FALSE(CharacterToByte(' ').has_value());
  EXPECT_FALSE(CharacterToByte(0xAD).has_value());
  EXPECT_EQ(AlphabetToBytes("\xC4\xA0hi\xE4\xB8\xAD\xFF"), " hi\xE4\xB8\xAD\xFF");
}

TEST(ByteAlphabetTest, AllBytes_RoundTrip) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  EXPECT_EQ(AlphabetToBytes(BytesToAlphabet(bytes)), bytes);
}

}  // namespace
}  // namespace weft
