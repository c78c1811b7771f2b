#include "coordinator/cli/commands/digest.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/digest/weight_digests.h"
#include "common/gguf/gguf_split.h"
#include "common/gguf/gguf_writer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class DigestTest : public ::testing::Test {
 protected:
  // A file with one tensor of a MiB and a half.
  void Write(const std::string& path, const std::string& tensor, const GgufMetadata& metadata) {
    const std::vector<uint8_t> data(3 << 19, 7);
    ASSERT_OK(WriteGgufFile(path, metadata,
                            {{tensor, *PackedLayout(DType::kF32, {3 << 17, 1, 1, 1})}}, {data}));
  }
  std::string WriteModel() {
    const std::string path = folder_.File("model.gguf");
    Write(path, "weight", {});
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(DigestTest, File_IsWrittenThenChecked) {
  const std::string path = WriteModel();
  int64_t done = 0;
  DigestOptions options{.model_path = path};
  options.progress = [&](int64_t bytes, int64_t) { done = bytes; };
  ASSERT_OK_AND_ASSIGN(const std::string text, RunDigest(options));
  EXPECT_EQ(text, path + ".weft-digest: 1 tensors, 2 digests\n");
  EXPECT_EQ(done, 3 << 19);
  EXPECT_OK(ReadWeightDigests(path));
  ASSERT_OK_AND_ASSIGN(const std::string checked, RunDigest({.model_path = path, .check = true}));
  EXPECT_EQ(checked, path + ".weft-digest: 1 tensors, 2 digests, all of them right\n");
}

TEST_F(DigestTest, Json_IsOneObject) {
  const std::string path = WriteModel();
  ASSERT_OK_AND_ASSIGN(const std::string text, RunDigest({.model_path = path, .json = true}));
  const auto value = nlohmann::json::parse(text);
  EXPECT_EQ(value["checked"], false);
  ASSERT_EQ(value["files"].size(), 1u);
  const auto& file = value["files"][0];
  EXPECT_EQ(file["file"], path);
  EXPECT_EQ(file["digests"], path + ".weft-digest");
  EXPECT_EQ(file["size"], std::filesystem::file_size(path));
  EXPECT_EQ(file["identity"].get<std::string>().size(), 64u);
  EXPECT_EQ(file["tensors"], 1);
  EXPECT_EQ(file["chunks"], 2);
}

TEST_F(DigestTest, SplitModel_HasDigestsBesideEachPart) {
  for (int part = 0; part < 2; ++part) {
    GgufMetadata metadata;
    metadata.Set(std::string(kGgufSplitNumberKey), uint16_t(part));
    metadata.Set(std::string(kGgufSplitCountKey), uint16_t{2});
    metadata.Set(std::string(kGgufSplitTensorCountKey), int32_t{2});
    Write(GgufSplitPath(folder_.File("split"), part, 2), "weight " + std::to_string(part),
          metadata);
  }
  const std::string second = GgufSplitPath(folder_.File("split"), 1, 2);
  EXPECT_OK(RunDigest({.model_path = second}));
  ASSERT_OK_AND_ASSIGN(const WeightDigests digests, ReadWeightDigests(second));
  ASSERT_EQ(digests.tensors.size(), 1u);
  EXPECT_EQ(digests.tensors[0].name, "weight 1");
  EXPECT_OK(RunDigest({.model_path = GgufSplitPath(folder_.File("split"), 0, 2), .check = true}));
}

TEST_F(DigestTest, Damage_IsFoundByName) {
  const std::string path = WriteModel();
  EXPECT_THAT(
      RunDigest({.model_path = path, .check = true}),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("'weft digest " + path + "' writes")));
  ASSERT_OK(RunDigest({.model_path = path}));
  std::string bytes = FileText(path);
  bytes.back() ^= 1;
  folder_.Write("model.gguf", bytes);
  EXPECT_THAT(RunDigest({.model_path = path, .check = true}),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("tensor 'weight' differs from its digests in bytes 1048576 to")));
  bytes.push_back(0);
  folder_.Write("model.gguf", bytes);
  EXPECT_THAT(RunDigest({.model_path = path, .check = true}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("of another file")));
  EXPECT_THAT(RunDigest({.model_path = folder_.File("none.gguf")}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.gguf")));
}

}  // namespace
}  // namespace weft
