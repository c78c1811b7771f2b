// Files on disk: single ones and split sets, good and bad.
#include "common/gguf/gguf_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <functional>

#include "absl/strings/str_cat.h"
#include "common/gguf/gguf_split.h"
#include "common/gguf/gguf_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/gguf/gguf_samples.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;

TEST(GgufSplitPath, Names_AreParsedAndComposed) {
  EXPECT_EQ(GgufSplitPath("a/b", 0, 3), "a/b-00001-of-00003.gguf");
  const auto name = ParseGgufSplitPath("a/b-00002-of-00003.gguf");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->prefix, "a/b");
  EXPECT_EQ(name->number, 1);
  EXPECT_EQ(name->count, 3);
  for (const char* other :
       {"", "a.gguf", "a-00000-of-00003.gguf", "a-0001-of-00003.gguf", "a-00001_of_00003.gguf",
        "a-00001-of-00003.ggu", "a-+0001-of-00003.gguf", "a- 0001-of-00003.gguf",
        "a--0001-of-00003.gguf", "a-00001-of-0000x.gguf", "00001-of-00003.gguf"}) {
    EXPECT_FALSE(ParseGgufSplitPath(other).has_value()) << other;
  }
}

TEST(GgufFile, SingleFile_GivesTensorsAndBytes) {
  const TemporaryFolder folder;
  GgufBytes file;
  file.Header(2, 1).TextKey("general.architecture", "llama");
  file.Tensor("a", {2}, 24, 0).Tensor("b", {1, 3}, 24, 32);
  file.AlignTo(32).Raw("\x01\x02").AlignTo(32).Raw("\x03\x04\x05");
  ASSERT_OK_AND_ASSIGN(const auto opened, GgufFile::Open(folder.Write("m.gguf", file.bytes())));
  EXPECT_EQ(opened->file_count(), 1);
  EXPECT_EQ(opened->version(), 3);
  EXPECT_EQ(*opened->metadata().String("general.architecture"), "llama");
  ASSERT_NE(opened->FindTensor("b"), nullptr);
  EXPECT_THAT(opened->TensorBytes(*opened->FindTensor("b")), testing::ElementsAre(3, 4, 5));
  EXPECT_EQ(opened->FindTensor("c"), nullptr);
}

TEST(GgufFile, WhatIsNoFile_IsAnErrorAndNeverBlocks) {
  const TemporaryFolder folder;
  EXPECT_THAT(GgufFile::Open(folder.File("none.gguf")),
              StatusIs(kNotFound, HasSubstr("none.gguf")));
  EXPECT_THAT(GgufFile::Open(folder.path()), StatusIs(kInvalid, HasSubstr("not a regular file")));
  ASSERT_EQ(mkfifo(folder.File("pipe").c_str(), 0600), 0);
  EXPECT_THAT(GgufFile::Open(folder.File("pipe")),
              StatusIs(kInvalid, HasSubstr("not a regular file")));
  EXPECT_THAT(GgufFile::Open(folder.Write("empty.gguf", "")),
              StatusIs(kInvalid, HasSubstr("empty.gguf: field 'magic'")));
}

// One part of a set; the test changes what it wants to be wrong.
struct PartSpec {
  GgufMetadata metadata;
  std::vector<std::string> tensors;
};

// Three parts with the tensors a, b and c, d; the first has no tensors, as is usual, and the
// model's keys.
std::vector<PartSpec> GoodParts() {
  std::vector<PartSpec> parts(3);
  for (int i = 0; i < 3; ++i) {
    if (i == 0) {
      parts[i].metadata.Set("general.architecture", std::string("llama"));
      parts[i].metadata.Set("llama.block_count", uint32_t{2});
    }
    parts[i].metadata.Set("split.no", static_cast<uint16_t>(i));
    parts[i].metadata.Set("split.count", uint16_t{3});
    parts[i].metadata.Set("split.tensors.count", int32_t{4});
  }
  parts[1].tensors = {"a", "b"};
  parts[2].tensors = {"c", "d"};
  return parts;
}

void WriteParts(const TemporaryFolder& folder, const std::vector<PartSpec>& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<GgufTensorSpec> tensors;
    const std::vector<uint8_t> bytes(4, static_cast<uint8_t>(i));
    for (const std::string& name : parts[i].tensors) {
      tensors.push_back({name, *PackedLayout(DType::kI8, {4, 1, 1, 1})});
    }
    const std::vector<absl::Span<const uint8_t>> data(tensors.size(), bytes);
    ASSERT_OK(WriteGgufFile(GgufSplitPath(folder.File("m"), i, parts.size()), parts[i].metadata,
                            tensors, data));
  }
}

TEST(GgufFile, SplitSet_OpensByAnyPart) {
  const TemporaryFolder folder;
  WriteParts(folder, GoodParts());
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto file, GgufFile::Open(GgufSplitPath(folder.File("m"), i, 3)));
    EXPECT_EQ(file->file_count(), 3);
    EXPECT_EQ(*file->metadata().Integer("split.no"), 0);
    EXPECT_EQ(*file->metadata().String("general.architecture"), "llama");
    ASSERT_EQ(file->tensors().size(), 4u);
    EXPECT_EQ(file->tensors()[0].name, "a");
    EXPECT_EQ(file->FindTensor("d")->file_index, 2);
    EXPECT_EQ(file->data_offset(0), static_cast<int64_t>(file->file(0).bytes().size()));
    EXPECT_EQ(file->data_offset(1), file->FindTensor("a")->file_offset);
    EXPECT_EQ(file->data_offset(2), file->FindTensor("c")->file_offset);
    EXPECT_THAT(file->TensorBytes(*file->FindTensor("d")), testing::ElementsAre(2, 2, 2, 2));
  }
}

TEST(GgufFile, SplitSetOfOne_NeedsNoSpecialName) {
  const TemporaryFolder folder;
  std::vector<PartSpec> parts(1);
  parts[0].metadata.Set("split.no", uint16_t{0});
  parts[0].metadata.Set("split.count", uint16_t{1});
  parts[0].metadata.Set("split.tensors.count", int32_t{1});
  parts[0].tensors = {"a"};
  WriteParts(folder, parts);
  EXPECT_OK(GgufFile::Open(GgufSplitPath(folder.File("m"), 0, 1)));
  std::filesystem::rename(GgufSplitPath(folder.File("m"), 0, 1), folder.File("other.gguf"));
  EXPECT_OK(GgufFile::Open(folder.File("other.gguf")));
}

TEST(GgufFile, PartWithOtherAlignment_IsAccepted) {
  const TemporaryFolder folder;
  std::vector<PartSpec> parts = GoodParts();
  parts[0].metadata.Set("general.alignment", uint32_t{64});
  parts[1].metadata.Set("general.alignment", uint32_t{128});
  WriteParts(folder, parts);
  EXPECT_OK(GgufFile::Open(GgufSplitPath(folder.File("m"), 0, 3)));
}

struct BadSet {
  const char* name;
  std::function<void(std::vector<PartSpec>&)> change;  // before writing
  std::function<void(const std::function<std::string(int)>&)>
      spoil;  // after; gets the path of part i
  absl::StatusCode code;
  const char* message;
};

void CheckBadSets(const std::vector<BadSet>& table) {
  for (const BadSet& row : table) {
    SCOPED_TRACE(row.name);
    const TemporaryFolder folder;
    std::vector<PartSpec> parts = GoodParts();
    if (row.change) row.change(parts);
    WriteParts(folder, parts);
    const auto path = [&](int i) { return GgufSplitPath(folder.File("m"), i, 3); };
    if (row.spoil) row.spoil(path);
    EXPECT_THAT(GgufFile::Open(path(0)),
                StatusIs(row.code, AllOf(HasSubstr(row.message), Not(HasSubstr("\n")))));
  }
}

TEST(GgufFile, BadSplitKeys_AreRefusedByName) {
  const auto set = [](int part, const char* key, const GgufValue& value) {
    return [=](std::vector<PartSpec>& parts) { parts[part].metadata.Set(key, value); };
  };
  const auto no_split_keys = [](int part) {
    return [=](std::vector<PartSpec>& parts) { parts[part].metadata = GgufMetadata(); };
  };
  CheckBadSets({
      {"count 0",
       set(0, "split.count", uint16_t{0}),
       {},
       kInvalid,
       "m-00001-of-00003.gguf: field 'split.count' = 0: must be from 1 to 4096"},
      {"count huge", set(0, "split.count", ~uint32_t{0}), {}, kInvalid, "= 4294967295: must be"},
      {"count negative",
       set(0, "split.count", int32_t{-3}),
       {},
       kInvalid,
       "= -3: must not be negative"},
      {"count of type",
       set(0, "split.count", std::string("3")),
       {},
       kInvalid,
       "key 'split.count' is string, want an integer"},
      {"number",
       set(0, "split.no", uint16_t{3}),
       {},
       kInvalid,
       "'split.no' = 3: must be below split.count, which is 3"},
      {"number of another",
       set(0, "split.no", uint16_t{1}),
       {},
       kInvalid,
       "'split.no' = 1: the file's name says part 1, which has split.no 0"},
      {"count unlike name",
       set(0, "split.count", uint16_t{2}),
       {},
       kInvalid,
       "'split.count' = 2: the file's name says 3 parts"},
      {"no keys",
       no_split_keys(0),
       {},
       kInvalid,
       "'split.count' = nothing: missing, though the file's name says part 1 of 3"},
      {"no keys later",
       no_split_keys(1),
       {},
       kInvalid,
       "m-00002-of-00003.gguf: field 'split.count' = nothing: missing, though this is part 2 of 3"},
      {"count later",
       set(2, "split.count", uint16_t{4}),
       {},
       kInvalid,
       "m-00003-of-00003.gguf: field 'split.count' = 4: want 3"},
      {"tensor count later",
       set(1, "split.tensors.count", int32_t{5}),
       {},
       kInvalid,
       "m-00002-of-00003.gguf: field 'split.tensors.count' = 5: want 4"},
      {"tensor count",
       [](std::vector<PartSpec>& parts) {
         for (PartSpec& part : parts) part.metadata.Set("split.tensors.count", int32_t{5});
       },
       {},
       kInvalid,
       "'split.tensors.count' = 5: the parts have 4 tensors"},
  });
}

TEST(GgufFile, BadSplitSets_AreRefusedByName) {
  namespace fs = std::filesystem;
  using Path = const std::function<std::string(int)>&;
  CheckBadSets({
      {"missing",
       {},
       [](Path path) { fs::remove(path(1)); },
       kNotFound,
       "m-00002-of-00003.gguf: missing: part 2 of 3 of a split model"},
      {"swapped",
       {},
       [](Path path) {
         fs::rename(path(1), path(1) + ".tmp");
         fs::rename(path(2), path(1));
         fs::rename(path(1) + ".tmp", path(2));
       },
       kInvalid,
       "m-00002-of-00003.gguf: field 'split.no' = 2: want 1 in part 2 of 3"},
      {"a part is a link to the first",
       {},
       [](Path path) {
         fs::remove(path(1));
         fs::create_symlink(path(0), path(1));
       },
       kInvalid,
       "m-00002-of-00003.gguf: field 'split.no' = 0: want 1"},
      {"a part is a link to itself",
       {},
       [](Path path) {
         fs::remove(path(1));
         fs::create_symlink(path(1), path(1));
       },
       kInvalid,
       "m-00002-of-00003.gguf: cannot open"},
      {"truncated part",
       {},
       [](Path path) { fs::resize_file(path(2), 100); },
       kInvalid,
       "m-00003-of-00003.gguf: field '"},
      {"mixed architectures",
       [](std::vector<PartSpec>& parts) {
         parts[2].metadata.Set("general.architecture", std::string("qwen2"));
       },
       {},
       kInvalid,
       "m-00003-of-00003.gguf: field 'general.architecture' = 'qwen2': the first part"},
      {"mixed shapes",
       [](std::vector<PartSpec>& parts) {
         parts[2].metadata.Set("llama.block_count", uint32_t{3});
       },
       {},
       kInvalid,
       "field 'llama.block_count' = 3: the first part"},
      {"duplicate tensor",
       [](std::vector<PartSpec>& parts) {
         parts[2].tensors = {"c", "a"};
       },
       {},
       kInvalid,
       "m-00003-of-00003.gguf: field 'tensor name' = a: duplicate tensor: also in "},
  });
}

TEST(GgufFile, PartUnderAnotherName_SaysHowPartsAreNamed) {
  const TemporaryFolder folder;
  WriteParts(folder, GoodParts());
  std::filesystem::rename(GgufSplitPath(folder.File("m"), 0, 3), folder.File("model.gguf"));
  EXPECT_THAT(GgufFile::Open(folder.File("model.gguf")),
              StatusIs(kInvalid, HasSubstr("must be named PREFIX-00001-of-00003.gguf")));
}

}  // namespace
}  // namespace weft
