// The reader against files made by hand: valid ones, each truncated at every byte, and one file per
// way to be wrong.
#include "common/gguf/gguf_reader.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/common/gguf/gguf_samples.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<GgufContents> Read(const GgufBytes& file) { return ReadGguf(file.span(), "m.gguf"); }

std::string SampleNamed(std::string_view name) {
  for (const auto& [sample, bytes] : GgufSamples()) {
    if (sample == name) return bytes;
  }
  ADD_FAILURE() << "no sample " << name;
  return "";
}

TEST(GgufReader, AllValueTypes_KeepTypeAndValue) {
  ASSERT_OK_AND_ASSIGN(const GgufContents contents,
                       ReadGguf(AsSpan(SampleNamed("all_value_types")), "m.gguf"));
  const GgufMetadata& metadata = contents.metadata;
  EXPECT_EQ(contents.version, 3);
  EXPECT_EQ(contents.alignment, 32);
  EXPECT_EQ(*metadata.Find("a.u8"), GgufValue(uint8_t{200}));
  EXPECT_EQ(*metadata.Find("a.i8"), GgufValue(int8_t{-5}));
  EXPECT_EQ(*metadata.Find("a.u16"), GgufValue(uint16_t{65535}));
  EXPECT_EQ(*metadata.Find("a.i16"), GgufValue(int16_t{-300}));
  EXPECT_EQ(*metadata.Find("a.u32"), GgufValue(uint32_t{4000000000u}));
  EXPECT_EQ(*metadata.Find("a.i32"), GgufValue(int32_t{-7}));
  EXPECT_EQ(*metadata.Find("a.f32"), GgufValue(0.5f));
  EXPECT_EQ(*metadata.Find("a.bool"), GgufValue(true));
  EXPECT_EQ(*metadata.Find("a.text"), GgufValue(std::string("h\xFFi")));
  EXPECT_EQ(*metadata.Find("a.u64"), GgufValue(~uint64_t{0}));
  EXPECT_EQ(*metadata.Find("a.i64"), GgufValue(int64_t{-1}));
  EXPECT_EQ(*metadata.Find("a.f64"), GgufValue(0.25));
  EXPECT_EQ(*metadata.Find("b.texts"), GgufValue(GgufArray(std::vector<std::string>{
                                           "", "x", "a long string of more than 16 bytes"})));
  EXPECT_EQ(*metadata.Find("b.bools"), GgufValue(GgufArray(std::vector<bool>{true, false, true})));
}

TEST(GgufReader, Tensors_HaveShapesOffsetsAndSizes) {
  const std::string bytes = SampleNamed("tensors");
  ASSERT_OK_AND_ASSIGN(const GgufContents contents, ReadGguf(AsSpan(bytes), "m.gguf"));
  EXPECT_EQ(contents.alignment, 64);
  EXPECT_EQ(contents.data_offset % 64, 0);
  ASSERT_EQ(contents.tensors.size(), 3u);
  EXPECT_EQ(contents.tensors[0].name, "output.weight");
  EXPECT_EQ(contents.tensors[0].layout, *PackedLayout(DType::kF32, {4, 3, 1, 1}));
  EXPECT_EQ(contents.tensors[0].file_offset, contents.data_offset);
  EXPECT_EQ(contents.tensors[0].bytes, 48);
  EXPECT_EQ(contents.tensors[1].layout, *PackedLayout(DType::kQ8_0, {32, 2, 1, 1}));
  EXPECT_EQ(contents.tensors[1].bytes, 68);
  EXPECT_EQ(contents.tensors[2].layout, *PackedLayout(DType::kF16, {1, 1, 1, 1}));
  EXPECT_EQ(contents.tensors[2].file_offset + 2, static_cast<int64_t>(bytes.size()));
}

TEST(GgufReader, Samples_AreValidAndFailTruncatedAtEveryByte) {
  for (const auto& [name, bytes] : GgufSamples()) {
    SCOPED_TRACE(name);
    EXPECT_OK(ReadGguf(AsSpan(bytes), "m.gguf"));
    for (size_t length = 0; length < bytes.size(); ++length) {
      // A copy of exactly that length, so that the address sanitizer sees a read beyond it.
      const std::vector<uint8_t> head(bytes.begin(), bytes.begin() + length);
      EXPECT_THAT(ReadGguf(head, "m.gguf"),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           AllOf(HasSubstr("m.gguf: field '"), HasSubstr("(at byte "))))
          << length;
    }
  }
}

TEST(GgufReader, Version2_ReadsLikeVersion3) {
  GgufBytes file;
  file.Header(1, 0, 2).Tensor("t", {8}, 0, 0).AlignTo(32).Zeros(32);
  ASSERT_OK_AND_ASSIGN(const GgufContents contents, Read(file));
  EXPECT_EQ(contents.version, 2);
  EXPECT_EQ(contents.tensors.size(), 1u);
}

TEST(GgufReader, Alignment_EveryAllowedValueWorks) {
  for (uint32_t alignment = 8; alignment <= 65536; alignment *= 2) {
    GgufBytes file;
    file.Header(2, 1).U32Key("general.alignment", alignment);
    file.Tensor("a", {1}, 24, 0).Tensor("b", {1}, 24, alignment);
    file.AlignTo(alignment).Zeros(alignment + 1);
    ASSERT_OK_AND_ASSIGN(const GgufContents contents, Read(file));
    EXPECT_EQ(contents.alignment, alignment);
    EXPECT_EQ(contents.data_offset % alignment, 0);
    EXPECT_EQ(contents.tensors[1].file_offset, contents.data_offset + alignment);
  }
}

TEST(GgufReader, Offsets_OutOfOrderAndWithGaps_AreAccepted) {
  GgufBytes file;
  file.Header(2, 0).Tensor("a", {8}, 0, 128).Tensor("b", {8}, 0, 32).AlignTo(32).Zeros(160);
  EXPECT_OK(Read(file));
}

TEST(GgufReader, TypesWithoutCodec_AreListed) {
  GgufBytes file;
  file.Header(1, 0).Tensor("t", {256}, 16, 0).AlignTo(32).Zeros(66);
  ASSERT_OK_AND_ASSIGN(const GgufContents contents, Read(file));
  EXPECT_EQ(contents.tensors[0].layout.dtype, DType::kIQ2_XXS);
  EXPECT_EQ(contents.tensors[0].bytes, 66);
}

struct Hostile {
  const char* name;
  GgufBytes file;
  const char* message;  // what the error must contain
};

void CheckHostile(const std::vector<Hostile>& table) {
  for (const Hostile& row : table) {
    SCOPED_TRACE(row.name);
    const absl::Status status = Read(row.file).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr("m.gguf: field '"), HasSubstr(row.message),
                                       HasSubstr(" (at byte "), Not(HasSubstr("\n")))));
    EXPECT_LT(status.message().size(), 500u);
  }
}

TEST(GgufReader, HostileHeader_IsRefusedByName) {
  constexpr int64_t kMany = int64_t{1} << 62;
  CheckHostile({
      {"magic", GgufBytes().Raw("GGML").Zeros(40), "'magic' = GGML: not a GGUF file"},
      {"magic bytes", GgufBytes().Raw("\n\x01\xFF\x7F").Zeros(40), "'magic' = \\n\\x01\\xff\\x7f:"},
      {"short", GgufBytes().Raw("GGUF").U32(3), "'file size' = 8: a header has 24 bytes"},
      {"version 0", GgufBytes().Header(0, 0, 0), "'version' = 0: not supported, want 2 or 3"},
      {"version 1", GgufBytes().Header(0, 0, 1), "'version' = 1: not supported, want 2 or 3"},
      {"version 4", GgufBytes().Header(0, 0, 4), "'version' = 4: not supported"},
      {"big-endian", GgufBytes().Header(0, 0, 3u << 24), "big-endian files are not supported"},
      {"tensor count", GgufBytes().Header(-1, 0), "'tensor count' = -1: negative"},
      {"key count", GgufBytes().Header(0, -5), "'key count' = -5: negative"},
      {"many tensors", GgufBytes().Header(kMany, 0),
       "'tensor count' = 4611686018427387904: a file of 24 bytes holds at most 0"},
      {"many keys", GgufBytes().Header(0, 11).Zeros(140),
       "'key count' = 11: a file of 164 bytes holds at most 10"},
  });
}

TEST(GgufReader, HostileKeys_AreRefusedByName) {
  const auto file = [] { return GgufBytes().Header(0, 1); };
  CheckHostile({
      {"empty key", file().Text("").U32(4).U32(1).Zeros(8), "'key 0' = '': must not be empty"},
      {"key length", file().U64(~uint64_t{0}).Zeros(99),
       "'key 0' = 18446744073709551615: string longer than the 99 bytes left"},
      {"long key", file().U32Key(std::string(65536, 'k'), 1),
       "'key 0' = 65536: string longer than the limit of 65535"},
      {"bad UTF-8", file().U32Key("a\xC0\x80", 1), "'key 0' = a\\xc0\\x80: is not valid UTF-8"},
      {"surrogate", file().U32Key("\xED\xA0\x80", 1), "is not valid UTF-8"},
      {"duplicate", GgufBytes().Header(0, 2).U32Key("k", 1).U32Key("k", 1),
       "'key 1' = k: duplicate key (at byte 41)"},
      {"value type", file().Text("k").U32(13).Zeros(99), "'k value type' = 13: unknown value type"},
      {"negative type", file().Text("k").U32(~0u).Zeros(9), "'k value type' = 4294967295: unknown"},
      {"bool", file().Text("k").U32(7).U8(2), "'k' = 2: a bool must be 0 or 1 (at byte 37)"},
      {"text", file().Text("k").U32(8).U64(1000).Zeros(9),
       "'k' = 1000: string longer than the 9 bytes left"},
      {"nested", file().ArrayKey("k", 9, 1).Zeros(9), "'k element type' = 9: arrays of arrays"},
      {"element type", file().ArrayKey("k", 99, 1), "'k element type' = 99: unknown value type"},
      {"elements", file().ArrayKey("k", 6, 11).Zeros(43),
       "'k element count' = 11: more elements than fit into the 43 bytes left"},
      {"wrapping elements", file().ArrayKey("k", 12, uint64_t{1} << 61).Zeros(9),
       "'k element count' = 2305843009213693952: more elements"},
      {"strings", file().ArrayKey("k", 8, 2).Zeros(15), "'k element count' = 2: more elements"},
      {"string in array", file().ArrayKey("k", 8, 2).Text("a").U64(7).Zeros(6),
       "'k[1]' = 7: string longer than the 6 bytes left"},
      {"bool in array", file().ArrayKey("k", 7, 2).U8(1).U8(255), "'k[1]' = 255: a bool must be"},
      {"control characters", file().Text("a\x1B[2J\n").U32(77).Zeros(9), "'a\\x1b[2J\\n value ty"},
      {"long shown", file().Text(std::string(999, 'q')).U32(77), "qqq... value type' = 77:"},
      {"alignment 0", file().U32Key("general.alignment", 0),
       "'general.alignment' = 0: must be a power of two from 8 to 65536 (at byte 49)"},
      {"alignment 4", file().U32Key("general.alignment", 4), "'general.alignment' = 4: must be"},
      {"alignment 48", file().U32Key("general.alignment", 48), "'general.alignment' = 48: must"},
      {"alignment 2^31", file().U32Key("general.alignment", 1u << 31), "= 2147483648: must be"},
      {"alignment type", file().Text("general.alignment").U32(10).U64(32), "= u64: must be u32"},
  });
}

TEST(GgufReader, HostileTensors_AreRefusedByName) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  const auto file = [](int64_t count = 1) { return GgufBytes().Header(count, 0); };
  CheckHostile({
      {"empty name", file().Tensor("", {8}, 0, 0), "'tensor 0 name' = '': must not be empty"},
      {"long name", file().Tensor(std::string(64, 'n'), {8}, 0, 0),
       "'tensor 0 name' = 64: string longer than the limit of 63"},
      {"bad UTF-8", file().Tensor("\xFF", {8}, 0, 0), "'tensor 0 name' = \\xff: is not valid UTF"},
      {"duplicate", file(2).Tensor("t", {8}, 0, 0).Tensor("t", {8}, 0, 32).AlignTo(32).Zeros(64),
       "'tensor 1 name' = t: duplicate tensor name"},
      {"dimensions", file().Text("t").U32(5).Zeros(99),
       "'tensor t dimension count' = 5: more than"},
      {"zero extent", file().Tensor("t", {8, 0}, 0, 0),
       "'tensor t extent 1' = 0: must be at least"},
      {"negative", file().Tensor("t", {-8}, 0, 0), "'tensor t extent 0' = -8: must be at least 1"},
      {"elements", file().Tensor("t", {1, 1, kHuge, 4}, 24, 0),
       "'tensor t extent 3' = 4: the number of elements overflows"},
      {"two negatives", file().Tensor("t", {-1, -1}, 24, 0), "'tensor t extent 0' = -1: must be"},
      {"bytes", file().Tensor("t", {1, kHuge}, 0, 0), "the number of bytes overflows"},
      {"block", file().Tensor("t", {33}, 2, 0),
       "'tensor t shape' = [33]: extent 0 must be a multiple of 32, the block of Q4_0"},
      {"type", file().Tensor("t", {8}, 99, 0), "'tensor t type' = 99: unknown tensor type"},
      {"huge type", file().Tensor("t", {8}, ~0u, 0), "'tensor t type' = 4294967295: unknown"},
      {"removed type", file().Tensor("t", {8}, 4, 0), "'tensor t type' = 4: this tensor type was"},
      {"misaligned", file().Tensor("t", {8}, 0, 4).AlignTo(32).Zeros(64),
       "'tensor t offset' = 4: not a multiple of the alignment 32"},
      {"offset", file().Tensor("t", {8}, 0, uint64_t{1} << 63).AlignTo(32).Zeros(32),
       "'tensor t offset' = 9223372036854775808: beyond the file's end at 96"},
      {"end", file().Tensor("t", {9}, 0, 0).AlignTo(32).Zeros(32),
       "'tensor t offset' = 0: its 36 bytes from byte 64 reach beyond the file's end at 96"},
      {"huge tensor", file().Tensor("t", {kHuge - 1}, 24, 0).AlignTo(32).Zeros(32),
       "reach beyond the file's end"},
      {"no data", file().Tensor("t", {8}, 0, 0), "reach beyond the file's end"},
      {"same place", file(2).Tensor("a", {8}, 0, 0).Tensor("b", {8}, 0, 0).AlignTo(32).Zeros(64),
       "'tensor b offset' = 0: overlaps tensor 'a'"},
      {"overlap", file(2).Tensor("a", {9}, 0, 32).Tensor("b", {9}, 0, 0).AlignTo(32).Zeros(96),
       "'tensor a offset' = 32: overlaps tensor 'b'"},
  });
}

TEST(GgufReader, MillionStrings_AreRead) {
  constexpr int kCount = 1000000;
  GgufBytes file;
  file.Header(0, 1).ArrayKey("tokens", 8, kCount);
  for (int i = 0; i < kCount; ++i) file.Text(absl::StrCat("t", i));
  ASSERT_OK_AND_ASSIGN(const GgufContents contents, Read(file));
  ASSERT_OK_AND_ASSIGN(const auto strings, contents.metadata.Strings("tokens"));
  ASSERT_EQ(strings.size(), static_cast<size_t>(kCount));
  EXPECT_EQ(strings[kCount - 1], "t999999");
}

TEST(GgufReader, HundredThousandKeysAndTensors_AreRead) {
  constexpr int kCount = 100000;
  GgufBytes file;
  file.Header(kCount, kCount);
  for (int i = 0; i < kCount; ++i) file.U32Key(absl::StrCat("k", i), i);
  for (int i = 0; i < kCount; ++i) file.Tensor(absl::StrCat("t", i), {}, 24, i * 32);
  file.AlignTo(32).Zeros(kCount * 32);
  ASSERT_OK_AND_ASSIGN(const GgufContents contents, Read(file));
  EXPECT_EQ(contents.tensors.size(), static_cast<size_t>(kCount));
  EXPECT_EQ(contents.metadata.entries().size(), static_cast<size_t>(kCount));
}

// Empty strings take 8 bytes in the file and 32 in memory, so an array of them is what grows most.
TEST(GgufReader, EmptyStringsBeyondTheMemoryLimit_AreRefusedBeforeAllocation) {
  constexpr int kCount = 20000000;
  GgufBytes file;
  file.Header(0, 1).ArrayKey("k", 8, kCount).Zeros(size_t{8} * kCount);
  EXPECT_THAT(Read(file), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("'k' = 640000000 bytes: would take more memory")));
}

}  // namespace
}  // namespace weft
