#include "common/gguf/gguf_writer.h"

#include <sys/stat.h>

#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/gguf/gguf_file.h"
#include "common/gguf/gguf_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_seed.h"
#include "tests/unit/common/gguf/gguf_samples.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

std::string RandomBytes(Random& random, int64_t length) {
  std::string bytes;
  for (int64_t i = 0; i < length; ++i) bytes += static_cast<char>(random.Next());
  return bytes;
}

template <typename T>
GgufArray RandomArray(Random& random) {
  std::vector<T> elements;
  const int64_t count = random.Between(0, 5);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, std::string>) {
      elements.push_back(RandomBytes(random, random.Between(0, 40)));
    } else if constexpr (std::is_same_v<T, bool>) {
      elements.push_back(random.Next() % 2 == 0);
    } else {
      const uint64_t bits = random.Next();
      T element;
      std::memcpy(&element, &bits, sizeof(T));  // NaN included
      elements.push_back(element);
    }
  }
  return elements;
}

template <typename T>
GgufValue RandomValue(Random& random) {
  if (random.Next() % 2 == 0) return RandomArray<T>(random);
  if constexpr (std::is_same_v<T, std::string>) return RandomBytes(random, random.Between(0, 40));
  if constexpr (std::is_same_v<T, bool>) return random.Next() % 2 == 0;
  if constexpr (!std::is_same_v<T, std::string> && !std::is_same_v<T, bool>) {
    const uint64_t bits = random.Next();
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
}

GgufValue RandomValue(Random& random) {
  switch (random.Between(0, 11)) {
    case 0:
      return RandomValue<uint8_t>(random);
    case 1:
      return RandomValue<int8_t>(random);
    case 2:
      return RandomValue<uint16_t>(random);
    case 3:
      return RandomValue<int16_t>(random);
    case 4:
      return RandomValue<uint32_t>(random);
    case 5:
      return RandomValue<int32_t>(random);
    case 6:
      return RandomValue<float>(random);
    case 7:
      return RandomValue<bool>(random);
    case 8:
      return RandomValue<std::string>(random);
    case 9:
      return RandomValue<uint64_t>(random);
    case 10:
      return RandomValue<int64_t>(random);
    default:
      return RandomValue<double>(random);
  }
}

struct Model {
  GgufMetadata metadata;
  std::vector<GgufTensorSpec> tensors;
  std::vector<std::string> data;
};

Model RandomModel(Random& random) {
  Model model;
  const int64_t keys = random.Between(0, 8);
  for (int64_t i = 0; i < keys; ++i) model.metadata.Set(absl::StrCat("k", i), RandomValue(random));
  if (random.Next() % 2 == 0) {
    model.metadata.Set("general.alignment", static_cast<uint32_t>(8u << random.Between(0, 6)));
  }
  const int64_t tensors = random.Between(0, 6);
  for (int64_t i = 0; i < tensors; ++i) {
    const DTypeInfo& type = AllDTypes()[random.Between(0, kDTypeCount - 1)];
    const Extents ne = {type.block_elements * random.Between(1, 3), random.Between(1, 3),
                        random.Between(1, 3), random.Between(1, 2)};
    const TensorLayout layout = *PackedLayout(type.dtype, ne);
    model.tensors.push_back({absl::StrCat("tensor.", i), layout});
    model.data.push_back(RandomBytes(random, *ByteExtent(layout)));
  }
  return model;
}

absl::Status WriteModel(const std::string& path, const Model& model) {
  std::vector<absl::Span<const uint8_t>> data;
  data.reserve(model.data.size());
  for (const std::string& bytes : model.data) data.push_back(AsSpan(bytes));
  return WriteGgufFile(path, model.metadata, model.tensors, data);
}

// What the reader makes of a file, ready to be written again.
Model ModelOf(const GgufFile& file) {
  Model model;
  for (const auto& [key, value] : file.metadata().entries()) model.metadata.Set(key, value);
  for (const GgufTensor& tensor : file.tensors()) {
    model.tensors.push_back({tensor.name, tensor.layout});
    const auto bytes = file.TensorBytes(tensor);
    model.data.emplace_back(bytes.begin(), bytes.end());
  }
  return model;
}

// INV-H2 of the spec.
TEST(GgufWriter, WriteOfParse_GivesTheSameFile) {
  Random random(TestSeed(20261129));
  const TemporaryFolder folder;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const Model model = RandomModel(random);
    const std::string first = folder.File("first.gguf");
    ASSERT_OK(WriteModel(first, model));
    ASSERT_OK_AND_ASSIGN(const auto file, GgufFile::Open(first));
    const Model parsed = ModelOf(*file);
    EXPECT_EQ(parsed.data, model.data);
    ASSERT_EQ(parsed.tensors.size(), model.tensors.size());
    for (size_t i = 0; i < parsed.tensors.size(); ++i) {
      EXPECT_EQ(parsed.tensors[i].name, model.tensors[i].name);
      EXPECT_EQ(parsed.tensors[i].layout, model.tensors[i].layout);
    }
    const std::string second = folder.File("second.gguf");
    ASSERT_OK(WriteModel(second, parsed));
    EXPECT_EQ(FileText(first), FileText(second));
    EXPECT_EQ(FileText(first).substr(0, 4), "GGUF");
  }
}

TEST(GgufWriter, WrittenFile_FailsTruncatedAtEveryByteOfItsHeadersAndTensors) {
  Random random(7);
  Model model;
  model.metadata.Set("general.architecture", std::string("llama"));
  model.metadata.Set("tokens", GgufArray(std::vector<std::string>{"a", "", "ccc"}));
  model.tensors = {{"t", *PackedLayout(DType::kQ4_0, {32, 1, 1, 1})}};
  model.data = {RandomBytes(random, 18)};
  const TemporaryFolder folder;
  ASSERT_OK(WriteModel(folder.File("m.gguf"), model));
  const std::string bytes = FileText(folder.File("m.gguf"));
  ASSERT_EQ(bytes.size() % 32, 0u);
  const size_t data_end = bytes.size() - 32 + 18;  // what follows is padding, which may be missing
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(ReadGguf(AsSpan(bytes.substr(0, length)), "m").ok(), length >= data_end) << length;
  }
}

TEST(GgufWriter, Append_TakesPiecesOfAnySize) {
  Random random(TestSeed(5));
  const Model model = [&] {
    Model made = RandomModel(random);
    while (made.tensors.size() < 3) made = RandomModel(random);
    return made;
  }();
  const TemporaryFolder folder;
  ASSERT_OK(WriteModel(folder.File("whole.gguf"), model));
  std::string stream;
  for (const std::string& bytes : model.data) stream += bytes;
  ASSERT_OK_AND_ASSIGN(const auto writer, GgufWriter::Create(folder.File("pieces.gguf"),
                                                             model.metadata, model.tensors));
  for (size_t at = 0; at < stream.size();) {
    const size_t length = random.Between(0, 300);
    ASSERT_OK(writer->Append(AsSpan(stream.substr(at, length))));
    at += length;
  }
  EXPECT_EQ(writer->tensor_index(), static_cast<int>(model.tensors.size()));
  ASSERT_OK(writer->Finish());
  EXPECT_EQ(FileText(folder.File("pieces.gguf")), FileText(folder.File("whole.gguf")));
}

TEST(GgufWriter, Unfinished_LeavesNothingBehind) {
  const TemporaryFolder folder;
  const std::vector<GgufTensorSpec> tensors = {{"t", *PackedLayout(DType::kF32, {2, 1, 1, 1})}};
  const std::vector<uint8_t> bytes(9);
  {
    ASSERT_OK_AND_ASSIGN(const auto writer,
                         GgufWriter::Create(folder.File("m.gguf"), GgufMetadata(), tensors));
    ASSERT_OK(writer->Append(absl::MakeConstSpan(bytes).first(7)));
    EXPECT_THAT(writer->Finish(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                           HasSubstr("tensor 't' is incomplete")));
    EXPECT_THAT(writer->Append(absl::MakeConstSpan(bytes).first(2)),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("1 bytes more than")));
    EXPECT_FALSE(std::filesystem::exists(folder.File("m.gguf")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(GgufWriter, Finish_ReplacesAnOlderFileAtOnce) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("m.gguf", "old");
  ASSERT_OK_AND_ASSIGN(const auto writer, GgufWriter::Create(path, GgufMetadata(), {}));
  EXPECT_EQ(FileText(path), "old");
  ASSERT_OK(writer->Finish());
  EXPECT_OK(GgufFile::Open(path));
  EXPECT_THAT(writer->Finish(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("")));
}

TEST(GgufWriter, UnwritablePath_IsNamed) {
  EXPECT_THAT(GgufWriter::Create("/nonexistent/m.gguf", GgufMetadata(), {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nonexistent/m.gguf")));
}

TEST(GgufWriter, WhatTheReaderWouldRefuse_IsRefused) {
  const TensorLayout good = *PackedLayout(DType::kF32, {4, 2, 1, 1});
  TensorLayout gaps = good;
  gaps.nb[1] = 32;
  const auto with_tensors = [](const std::vector<GgufTensorSpec>& tensors) {
    return GgufHeaderBytes(GgufMetadata(), tensors);
  };
  const auto with_key = [](std::string key, GgufValue value) {
    GgufMetadata metadata;
    metadata.Set(std::move(key), std::move(value));
    return GgufHeaderBytes(metadata, {});
  };
  EXPECT_THAT(with_tensors({{"", good}}), StatusIs(kInvalid, HasSubstr("must not be empty")));
  EXPECT_THAT(with_tensors({{std::string(64, 'x'), good}}), StatusIs(kInvalid, HasSubstr("63")));
  EXPECT_THAT(with_tensors({{"\xFF", good}}), StatusIs(kInvalid, HasSubstr("UTF-8")));
  EXPECT_THAT(with_tensors({{"t", good}, {"t", good}}), StatusIs(kInvalid, HasSubstr("duplicate")));
  EXPECT_THAT(with_tensors({{"t", gaps}}), StatusIs(kInvalid, HasSubstr("not packed")));
  EXPECT_THAT(with_tensors({{"t", *PackedLayout(DType::kF32, {4, 0, 1, 1})}}),
              StatusIs(kInvalid, HasSubstr("at least 1")));
  EXPECT_THAT(with_key("", uint8_t{1}), StatusIs(kInvalid, HasSubstr("must not be empty")));
  EXPECT_THAT(with_key("\xFF", uint8_t{1}), StatusIs(kInvalid, HasSubstr("UTF-8")));
  EXPECT_THAT(with_key("general.alignment", uint32_t{12}), StatusIs(kInvalid, HasSubstr("power")));
  EXPECT_THAT(with_key("general.alignment", uint64_t{32}), StatusIs(kInvalid, HasSubstr("u32")));
}

TEST(GgufWriter, WrongAmountOfData_IsRefused) {
  const TemporaryFolder folder;
  const std::vector<uint8_t> bytes(7);
  const std::vector<GgufTensorSpec> tensors = {{"t", *PackedLayout(DType::kF32, {2, 1, 1, 1})}};
  EXPECT_THAT(WriteGgufFile(folder.File("m.gguf"), GgufMetadata(), tensors, {bytes}),
              StatusIs(kInvalid, HasSubstr("'t': 7 bytes of data, want 8")));
  EXPECT_THAT(WriteGgufFile(folder.File("m.gguf"), GgufMetadata(), tensors, {}),
              StatusIs(kInvalid, HasSubstr("0 pieces of data for 1 tensors")));
}

}  // namespace
}  // namespace weft
