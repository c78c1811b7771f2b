#include "rpc_backend/protocol/wire_reader.h"

#include "gtest/gtest.h"
#include "rpc_backend/protocol/wire_writer.h"

namespace weft {
namespace {

std::string_view TextOf(const std::vector<uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(WireReader, FieldsOfEachType_AreReadAsWritten) {
  std::vector<uint8_t> bytes;
  WireWriter writer(bytes);
  writer.Int(1, -1);
  writer.Double(2, 0.5);
  writer.Text(536870911, "text");
  WireReader reader(TextOf(bytes));
  const auto integer = reader.Next();
  ASSERT_TRUE(integer);
  EXPECT_EQ(static_cast<int64_t>(integer->value), -1);
  const auto real = reader.Next();
  ASSERT_TRUE(real);
  EXPECT_EQ(std::bit_cast<double>(real->value), 0.5);
  const auto text = reader.Next();
  ASSERT_TRUE(text);
  EXPECT_EQ(text->number, 536870911);
  EXPECT_EQ(text->bytes, "text");
  EXPECT_FALSE(reader.Next());
  EXPECT_TRUE(reader.ok());
}

TEST(WireReader, BytesThatAreNoFields_EndReading) {
  // A cut varint, one of eleven bytes, field number 0, groups, a cut length, cut fixed numbers.
  // NOLINTBEGIN(bugprone-suspicious-missing-comma): letters would lengthen the escapes before them.
  const std::string_view cases[] = {"\x80",
                                    "\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
                                    "\x02",
                                    "\x0B",
                                    "\x0C",
                                    "\x0A\x05"
                                    "abcd",
                                    "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
                                    "\x09"
                                    "1234567",
                                    "\x0D"
                                    "123",
                                    "\x08"};
  // NOLINTEND(bugprone-suspicious-missing-comma)
  for (const std::string_view bytes : cases) {
    WireReader reader(bytes);
    EXPECT_FALSE(reader.Next());
    EXPECT_FALSE(reader.ok());
    EXPECT_FALSE(reader.Next());
  }
}

TEST(WireReader, Prefixes_NeverReadBeyondTheirEnd) {
  std::vector<uint8_t> bytes;
  WireWriter writer(bytes);
  writer.Int(3, int64_t{1} << 60);
  writer.Text(4, "0123456789");
  writer.Double(5, 1);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const std::vector<uint8_t> start(bytes.begin(), bytes.begin() + static_cast<long>(size));
    WireReader reader(TextOf(start));
    int count = 0;
    while (reader.Next()) ++count;
    EXPECT_LE(count, 3);
  }
}

TEST(WireWriter, SizesInAdvance_AreThoseWritten) {
  for (int shift = 0; shift < 64; ++shift) {
    const auto value = static_cast<int64_t>(uint64_t{1} << shift);
    std::vector<uint8_t> bytes;
    WireWriter(bytes).Int(16, value);
    EXPECT_EQ(bytes.size(), WireWriter::IntBytes(16, value)) << shift;
  }
}

TEST(PackedVarintCount, Values_AreCountedByTheirLastBytes) {
  EXPECT_EQ(PackedVarintCount(""), 0);
  EXPECT_EQ(PackedVarintCount(std::string_view("\x00\x80\x01\x05", 4)), 3);
}

}  // namespace
}  // namespace weft
