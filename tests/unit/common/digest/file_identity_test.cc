#include "common/digest/file_identity.h"

#include <vector>

#include "common/gguf/gguf_writer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// Bytes that differ everywhere.
std::vector<uint8_t> SomeBytes(size_t size) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 31 + (i >> 8));
  return bytes;
}

Sha256Digest DigestOf(const std::vector<uint8_t>& bytes, int64_t data_offset) {
  const absl::StatusOr<FileIdentity> identity = IdentifyBytes(bytes, data_offset);
  EXPECT_OK(identity);
  return identity.ok() ? identity->digest : Sha256Digest();
}

TEST(FileIdentity, EqualBytes_HaveEqualIdentities) {
  const std::vector<uint8_t> bytes = SomeBytes(1 << 20);
  EXPECT_EQ(DigestOf(bytes, 1000), DigestOf(std::vector<uint8_t>(bytes), 1000));
}

TEST(FileIdentity, SizeHeaderAndDataStart_AreParts) {
  const std::vector<uint8_t> bytes = SomeBytes(1 << 20);
  const Sha256Digest digest = DigestOf(bytes, 1000);
  std::vector<uint8_t> longer = bytes;
  longer.push_back(0);
  EXPECT_NE(DigestOf(longer, 1000), digest);
  EXPECT_NE(DigestOf(bytes, 1001), digest);
  for (const size_t at : {size_t{0}, size_t{500}, size_t{999}}) {
    std::vector<uint8_t> other = bytes;
    other[at] ^= 1;
    EXPECT_NE(DigestOf(other, 1000), digest) << at;
  }
}

TEST(FileIdentity, SmallFile_IsDigestedWhole) {
  const std::vector<uint8_t> bytes = SomeBytes(64 * 50 + 17);
  const Sha256Digest digest = DigestOf(bytes, 100);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::vector<uint8_t> other = bytes;
    other[at] ^= 1;
    ASSERT_NE(DigestOf(other, 100), digest) << at;
  }
}

// A download that ended early, or with holes, loses long stretches.
TEST(FileIdentity, LargeFile_ShowsStretchesThatAreMissing) {
  const std::vector<uint8_t> bytes = SomeBytes(size_t{4} << 20);
  const Sha256Digest digest = DigestOf(bytes, 4096);
  const size_t stretch = (bytes.size() - 4096) / kIdentityBlockCount;
  for (size_t i = 0; i + 2 <= kIdentityBlockCount; ++i) {
    std::vector<uint8_t> other = bytes;
    const auto first = other.begin() + static_cast<long>(4096 + i * stretch);
    std::fill(first, first + static_cast<long>(stretch), 0);
    EXPECT_NE(DigestOf(other, 4096), digest) << i;
  }
}

TEST(FileIdentity, LargeFile_IsReadInBlocks) {
  std::vector<uint8_t> bytes = SomeBytes(size_t{16} << 20);
  const Sha256Digest digest = DigestOf(bytes, 0);
  int seen = 0;
  for (size_t i = 0; i < 256; ++i) {
    bytes[i * 65536 + 1234] ^= 1;
    if (DigestOf(bytes, 0) != digest) ++seen;
    bytes[i * 65536 + 1234] ^= 1;
  }
  EXPECT_LT(seen, 64) << "64 blocks of 4 KiB are a sixty-fourth of the file";
}

TEST(FileIdentity, EmptyAndTinyFiles_HaveOne) {
  EXPECT_NE(DigestOf({}, 0), DigestOf({0}, 0));
  EXPECT_NE(DigestOf({0}, 0), DigestOf({0}, 1));
  EXPECT_NE(DigestOf({0}, 1), DigestOf({1}, 1));
}

TEST(FileIdentity, DataOutsideTheFile_IsRefused) {
  const std::vector<uint8_t> bytes = SomeBytes(10);
  EXPECT_THAT(IdentifyBytes(bytes, 11), StatusIs(absl::StatusCode::kInvalidArgument,
                                                 HasSubstr("at byte 11 of a file of 10")));
  EXPECT_THAT(IdentifyBytes(bytes, -1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("")));
}

TEST(FileIdentity, GgufFile_StartsItsDataWhereTheHeaderSays) {
  const TemporaryFolder folder;
  const std::string path = folder.File("model.gguf");
  const std::vector<uint8_t> data = SomeBytes(4096);
  const TensorLayout layout = *PackedLayout(DType::kF32, {1024, 1, 1, 1});
  GgufMetadata metadata;
  metadata.Set("general.name", std::string("test"));
  ASSERT_OK(WriteGgufFile(path, metadata, {{"a", layout}}, {data}));
  ASSERT_OK_AND_ASSIGN(const auto file, MappedFile::Open(path));
  ASSERT_OK_AND_ASSIGN(const FileIdentity identity, IdentifyGguf(*file));
  const auto data_offset = static_cast<int64_t>(file->bytes().size() - data.size());
  ASSERT_OK_AND_ASSIGN(const FileIdentity expected, IdentifyBytes(file->bytes(), data_offset));
  EXPECT_EQ(identity, expected);
  ASSERT_OK_AND_ASSIGN(const auto model, GgufFile::Open(path));
  ASSERT_OK_AND_ASSIGN(const FileIdentity of_model, IdentifyGguf(*model, 0));
  EXPECT_EQ(of_model, expected);
  EXPECT_THAT(IdentifyGguf(data, "no.gguf"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no.gguf")));
}

}  // namespace
}  // namespace weft
