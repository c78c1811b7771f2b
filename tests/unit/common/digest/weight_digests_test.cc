#include "common/digest/weight_digests.h"

#include <fstream>

#include "common/gguf/gguf_writer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
constexpr auto kBad = absl::StatusCode::kInvalidArgument;

constexpr int64_t kLongBytes = 2 * kDigestChunkBytes + 400;

// A model with a tensor of two chunks and a bit, and a short one.
class WeightDigestsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    long_.resize(kLongBytes);
    for (size_t i = 0; i < long_.size(); ++i) long_[i] = static_cast<uint8_t>(i * 7 + (i >> 9));
    short_.assign(64, 3);
    GgufMetadata metadata;
    metadata.Set("general.name", std::string("test"));
    ASSERT_OK(WriteGgufFile(path_, metadata,
                            {{"long weight", *PackedLayout(DType::kF32, {kLongBytes / 4, 1, 1, 1})},
                             {"short\n", *PackedLayout(DType::kF32, {16, 1, 1, 1})}},
                            {long_, short_}));
    ASSERT_OK_AND_ASSIGN(file_, GgufFile::Open(path_));
  }

  // The model with one byte of the long tensor changed.
  std::unique_ptr<GgufFile> Damaged(size_t at) {
    std::string bytes = FileText(path_);
    bytes[static_cast<size_t>(file_->tensors()[0].file_offset) + at] ^= 1;
    return *GgufFile::Open(folder_.Write("damaged.gguf", bytes));
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.File("model.gguf");
  std::vector<uint8_t> long_, short_;
  std::unique_ptr<GgufFile> file_;
};

TEST_F(WeightDigestsTest, Compute_DigestsEachChunk) {
  int64_t last = 0;
  int64_t total = 0;
  const DigestProgress progress = [&](int64_t done, int64_t of) {
    EXPECT_GT(done, last);
    last = done;
    total = of;
    return true;
  };
  ASSERT_OK_AND_ASSIGN(const WeightDigests digests, ComputeWeightDigests(*file_, 0, progress));
  EXPECT_EQ(last, kLongBytes + 64);
  EXPECT_EQ(total, kLongBytes + 64);
  ASSERT_EQ(digests.tensors.size(), 2u);
  EXPECT_EQ(digests.tensors[0].name, "long weight");
  EXPECT_EQ(digests.tensors[1].name, "short\\n");
  const absl::Span<const uint8_t> bytes(long_);
  ASSERT_EQ(digests.tensors[0].chunks.size(), 3u);
  EXPECT_EQ(digests.tensors[0].chunks[1],
            Sha256::Of(bytes.subspan(kDigestChunkBytes, kDigestChunkBytes)));
  EXPECT_EQ(digests.tensors[0].chunks[2], Sha256::Of(bytes.subspan(2 * kDigestChunkBytes)));
  EXPECT_EQ(digests.tensors[1].chunks, std::vector<Sha256Digest>{Sha256::Of(short_)});
}

TEST_F(WeightDigestsTest, Progress_CanEndTheWork) {
  EXPECT_THAT(ComputeWeightDigests(*file_, 0, [](int64_t, int64_t) { return false; }),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
}

TEST_F(WeightDigestsTest, File_ComesBackEqualAndFits) {
  EXPECT_THAT(ReadWeightDigests(path_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("model.gguf.weft-digest")));
  ASSERT_OK_AND_ASSIGN(const WeightDigests digests, ComputeWeightDigests(*file_, 0, nullptr));
  ASSERT_OK(WriteWeightDigests(digests, path_));
  ASSERT_OK(WriteWeightDigests(digests, path_)) << "replaces the file";
  ASSERT_OK_AND_ASSIGN(const WeightDigests read, ReadWeightDigests(path_));
  EXPECT_EQ(read, digests);
  EXPECT_OK(CheckDigestsFit(read, *file_, 0));
  EXPECT_OK(CheckWeightDigests(read, *file_, 0, nullptr));
  EXPECT_FALSE(WriteWeightDigests(digests, folder_.File("no/such/folder")).ok());
}

TEST_F(WeightDigestsTest, ChangedByte_IsFoundByTensorAndChunk) {
  ASSERT_OK_AND_ASSIGN(const WeightDigests digests, ComputeWeightDigests(*file_, 0, nullptr));
  EXPECT_THAT(CheckWeightDigests(digests, *Damaged(kDigestChunkBytes + 9), 0, nullptr),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("damaged.gguf: tensor 'long weight' differs from its digests in "
                                 "bytes 1048576 to 2097152")));
  EXPECT_OK(CheckDigestsFit(digests, *Damaged(kDigestChunkBytes + 9), 0)) << "reads no data";
}

TEST_F(WeightDigestsTest, DigestsOfAnotherFile_AreRefused) {
  ASSERT_OK_AND_ASSIGN(const WeightDigests digests, ComputeWeightDigests(*file_, 0, nullptr));
  constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;
  WeightDigests other = digests;
  ++other.size;
  EXPECT_THAT(CheckDigestsFit(other, *file_, 0), StatusIs(kRefused, HasSubstr("bytes")));
  other = digests;
  other.header.bytes[0] ^= 1;
  EXPECT_THAT(CheckDigestsFit(other, *file_, 0), StatusIs(kRefused, HasSubstr("header")));
  other = digests;
  other.tensors.pop_back();
  EXPECT_THAT(CheckDigestsFit(other, *file_, 0), StatusIs(kRefused, HasSubstr("1 tensors")));
  other = digests;
  other.tensors[1].offset += 32;
  EXPECT_THAT(CheckDigestsFit(other, *file_, 0), StatusIs(kRefused, HasSubstr("'short\\n'")));
}

TEST(WeightDigestsText, WrongLines_AreRefusedByNumber) {
  WeightDigests digests;
  digests.size = 1000;
  digests.tensors = {{"a b", 100, 50, {Sha256Digest()}}};
  const std::string text = WeightDigestsText(digests);
  ASSERT_OK_AND_ASSIGN(const WeightDigests parsed, ParseWeightDigests(text, "f"));
  EXPECT_EQ(parsed, digests);
  // With each of these pieces of the text replaced.
  const auto check = [&](const std::string& from, const std::string& to, const std::string& why) {
    std::string changed = text;
    const size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    EXPECT_THAT(ParseWeightDigests(changed, "f"), StatusIs(kBad, HasSubstr(why))) << to;
  };
  check("weft-digest 1", "weft-digest 2", "f:1: want 'weft-digest 1'");
  check("size 1000", "size -1", "f:2: '-1' is no number");
  check("size 1000", "size 01000", "f:2: '01000' is no number");
  check("size 1000", "size 99999999999999999999", "f:2:");
  check("size 1000", "size", "f:2: 'size', want 'size ...'");
  check("header 0", "header g", "f:3:");
  check("chunk 1048576", "chunk 1", "f:4: want 'chunk 1048576'");
  check("tensors 1", "tensors 2", "f:8: 'end");
  check("tensors 1", "tensors 9000000000000000000", "f:8: 'end");
  check("tensor 100 50 a b", "tensor 100 50", "f:6: want 'tensor OFFSET BYTES NAME'");
  check("tensor 100 50 a b", "tensor 100 901 a b", "f:6: 901 bytes at 100 of a file of 1000");
  check("tensor 100 50 a b", "tensor 100 9223372036854775807 a b", "f:6:");
  check("tensor 100 50 a b", "tensor 100 50 " + std::string(300, 'x'), "f:6: the name is too long");
  check("\nend ", "\nend x", "f:8:");
  EXPECT_THAT(ParseWeightDigests(text + "more", "f"), StatusIs(kBad, HasSubstr("nothing follows")));
  EXPECT_THAT(ParseWeightDigests("", "f"), StatusIs(kBad, HasSubstr("f:1: the file ends here")));
}

TEST(WeightDigestsText, ChangedDigest_IsDataLoss) {
  WeightDigests digests;
  digests.size = 1000;
  digests.tensors = {{"a", 100, 50, {Sha256Digest()}}};
  std::string text = WeightDigestsText(digests);
  text[text.find("\n0000") + 5] = 'a';
  EXPECT_THAT(ParseWeightDigests(text, "f"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("f: is damaged")));
}

// A short file cannot claim memory for a large one.
TEST(WeightDigestsText, HugeTensorWithoutDigests_EndsAtTheEndOfTheText) {
  const std::string text = "weft-digest 1\nsize 9000000000000000000\nheader " +
                           Sha256Digest().Hex() +
                           "\nchunk 1048576\ntensors 1000000000\ntensor 0 9000000000000000000 a\n";
  EXPECT_THAT(ParseWeightDigests(text, "f"), StatusIs(kBad, HasSubstr("f:7: the file ends here")));
}

}  // namespace
}  // namespace weft
