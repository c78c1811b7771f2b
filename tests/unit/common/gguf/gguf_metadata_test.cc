#include "common/gguf/gguf_metadata.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(GgufMetadata, Add_KeepsOrderAndRefusesDuplicates) {
  GgufMetadata metadata;
  EXPECT_OK(metadata.Add("z", uint32_t{1}));
  EXPECT_OK(metadata.Add("a", std::string("text")));
  EXPECT_THAT(metadata.Add("z", uint32_t{2}),
              StatusIs(absl::StatusCode::kAlreadyExists, "duplicate key 'z'"));
  ASSERT_EQ(metadata.entries().size(), 2u);
  EXPECT_EQ(metadata.entries()[0].first, "z");
  EXPECT_EQ(*metadata.Find("z"), GgufValue(uint32_t{1}));
}

TEST(GgufMetadata, Set_ReplacesInPlace) {
  GgufMetadata metadata;
  metadata.Set("a", uint32_t{1});
  metadata.Set("b", uint32_t{2});
  metadata.Set("a", std::string("x"));
  ASSERT_EQ(metadata.entries().size(), 2u);
  EXPECT_EQ(metadata.entries()[0].second, GgufValue(std::string("x")));
}

TEST(GgufMetadata, Integer_TakesAnyWidthAndSignThatFits) {
  GgufMetadata metadata;
  metadata.Set("u8", uint8_t{255});
  metadata.Set("i8", int8_t{-1});
  metadata.Set("u16", uint16_t{65535});
  metadata.Set("i16", int16_t{-2});
  metadata.Set("u32", uint32_t{4294967295u});
  metadata.Set("i32", int32_t{-3});
  metadata.Set("i64", int64_t{-4});
  metadata.Set("u64", uint64_t{9223372036854775807u});
  metadata.Set("large", uint64_t{9223372036854775808u});
  metadata.Set("bool", true);
  EXPECT_EQ(*metadata.Integer("u8"), 255);
  EXPECT_EQ(*metadata.Integer("i8"), -1);
  EXPECT_EQ(*metadata.Integer("u16"), 65535);
  EXPECT_EQ(*metadata.Integer("i16"), -2);
  EXPECT_EQ(*metadata.Integer("u32"), 4294967295);
  EXPECT_EQ(*metadata.Integer("i32"), -3);
  EXPECT_EQ(*metadata.Integer("i64"), -4);
  EXPECT_EQ(*metadata.Integer("u64"), 9223372036854775807);
  EXPECT_THAT(metadata.Integer("large"),
              StatusIs(kInvalid, "key 'large' = 9223372036854775808, want an integer below 2^63"));
  EXPECT_THAT(metadata.Integer("bool"), StatusIs(kInvalid, "key 'bool' is bool, want an integer"));
}

TEST(GgufMetadata, LookUps_NameTheKeyAndBothTypes) {
  GgufMetadata metadata;
  metadata.Set("n", uint32_t{7});
  metadata.Set("texts", GgufArray(std::vector<std::string>{"a", "b"}));
  EXPECT_THAT(metadata.String("n"), StatusIs(kInvalid, "key 'n' is u32, want string"));
  EXPECT_THAT(metadata.Float("n"), StatusIs(kInvalid, "key 'n' is u32, want f32"));
  EXPECT_THAT(metadata.Bool("n"), StatusIs(kInvalid, "key 'n' is u32, want bool"));
  EXPECT_THAT(metadata.Strings("n"), StatusIs(kInvalid, HasSubstr("want array of strings")));
  EXPECT_THAT(metadata.Integers("texts"),
              StatusIs(kInvalid, "key 'texts' is array of string [2], want array of integers"));
  EXPECT_THAT(metadata.Floats("texts"), StatusIs(kInvalid, HasSubstr("want array of f32")));
  EXPECT_THAT(metadata.Bools("texts"), StatusIs(kInvalid, HasSubstr("want array of bools")));
  EXPECT_THAT(metadata.Integer("none"),
              StatusIs(absl::StatusCode::kNotFound, "missing key 'none'"));
}

TEST(GgufMetadata, Arrays_ComeBackTyped) {
  GgufMetadata metadata;
  metadata.Set("texts", GgufArray(std::vector<std::string>{"a", "b"}));
  metadata.Set("u8", GgufArray(std::vector<uint8_t>{1, 200}));
  metadata.Set("i32", GgufArray(std::vector<int32_t>{-1}));
  metadata.Set("u64", GgufArray(std::vector<uint64_t>{~uint64_t{0}}));
  metadata.Set("f32", GgufArray(std::vector<float>{0.5f}));
  metadata.Set("bools", GgufArray(std::vector<bool>{true, false}));
  EXPECT_THAT(*metadata.Strings("texts"), ElementsAre("a", "b"));
  EXPECT_THAT(*metadata.Integers("u8"), ElementsAre(1, 200));
  EXPECT_THAT(*metadata.Integers("i32"), ElementsAre(-1));
  EXPECT_THAT(metadata.Integers("u64"), StatusIs(kInvalid, HasSubstr("= 18446744073709551615")));
  EXPECT_THAT(*metadata.Floats("f32"), ElementsAre(0.5f));
  EXPECT_THAT(*metadata.Bools("bools"), ElementsAre(true, false));
}

TEST(GgufMetadata, Defaults_StandInForAbsentKeysOnly) {
  GgufMetadata metadata;
  metadata.Set("text", std::string("x"));
  metadata.Set("f64", 0.25);
  EXPECT_EQ(*metadata.IntegerOr("none", 5), 5);
  EXPECT_EQ(*metadata.FloatOr("none", 0.5), 0.5);
  EXPECT_EQ(*metadata.FloatOr("f64", 0.5), 0.25);
  EXPECT_EQ(*metadata.BoolOr("none", true), true);
  EXPECT_EQ(*metadata.StringOr("none", "y"), "y");
  EXPECT_EQ(*metadata.StringOr("text", "y"), "x");
  EXPECT_THAT(metadata.IntegerOr("text", 5), StatusIs(kInvalid, HasSubstr("want an integer")));
  EXPECT_THAT(metadata.FloatOr("text", 5), StatusIs(kInvalid, HasSubstr("want f32")));
  EXPECT_THAT(metadata.BoolOr("text", false), StatusIs(kInvalid, HasSubstr("want bool")));
  EXPECT_THAT(metadata.StringOr("f64", ""), StatusIs(kInvalid, HasSubstr("want string")));
}

}  // namespace
}  // namespace weft
