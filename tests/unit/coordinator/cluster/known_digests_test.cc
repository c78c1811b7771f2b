#include "coordinator/cluster/known_digests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kMiB = kDigestChunkBytes;

std::vector<Sha256Digest> DigestsOf(std::string_view content) {
  std::vector<Sha256Digest> digests;
  for (size_t at = 0; at < content.size(); at += kMiB) {
    Sha256 digest;
    digest.Update(content.substr(at, kMiB));
    digests.push_back(digest.Finish());
  }
  return digests;
}

// Two files of three tensors with gaps between them.
class KnownDigestsTest : public ::testing::Test {
 protected:
  KnownDigestsTest() {
    for (int32_t file = 0; file < 2; ++file) {
      std::string& content = contents_.emplace_back(static_cast<size_t>(8 * kMiB), '\0');
      for (size_t i = 0; i < content.size(); i += 64) {
        content[i] = static_cast<char>(i >> 6);
        content[i + 1] = static_cast<char>(i >> 14);
        content[i + 2] = static_cast<char>(file);
      }
      WeightDigests digests;
      for (const auto& [offset, bytes] : places_) {
        digests.tensors.push_back({"t", offset, bytes, DigestsOf(Content({file, offset, bytes}))});
      }
      known_.Add(file, std::move(digests));
    }
  }
  std::string_view Content(const RemoteWeightSlice& slice) const {
    return std::string_view(contents_[static_cast<size_t>(slice.file)])
        .substr(static_cast<size_t>(slice.offset), static_cast<size_t>(slice.bytes));
  }

  const std::vector<std::pair<int64_t, int64_t>> places_ = {
      {4096, 2 * kMiB + 100}, {3 * kMiB, kMiB}, {4 * kMiB + 64, 3 * kMiB}};
  std::vector<std::string> contents_;
  KnownDigests known_;
};

TEST_F(KnownDigestsTest, Of_WholeTensorsAndPieces_ThoseOfTheContent) {
  const std::vector<std::vector<RemoteWeightSlice>> all = {
      {{0, 4096, 2 * kMiB + 100}},                           // a tensor
      {{0, 4096 + kMiB, kMiB + 100}},                        // its end
      {{1, 4096, kMiB}},                                     // its beginning
      {{1, 3 * kMiB, kMiB}, {0, 4096, 2 * kMiB + 100}},      // two, the first in whole MiB
      {{1, 4 * kMiB + 64, kMiB}, {1, 6 * kMiB + 64, kMiB}},  // two parts of one
  };
  for (const std::vector<RemoteWeightSlice>& slices : all) {
    std::string content;
    for (const RemoteWeightSlice& slice : slices) content += Content(slice);
    EXPECT_EQ(known_.Of(slices), DigestsOf(content));
  }
}

TEST_F(KnownDigestsTest, Of_CutMiBsAndOtherPlaces_Empty) {
  const std::vector<std::vector<RemoteWeightSlice>> all = {
      {{0, 0, 4096}},                                    // before any tensor
      {{0, 4096 + 64, kMiB}},                            // begins within a MiB
      {{0, 4096, kMiB / 2}},                             // ends within one
      {{0, 4096, 2 * kMiB + 200}},                       // ends behind the tensor
      {{2, 4096, kMiB}},                                 // of no file
      {{0, 4096, 2 * kMiB + 100}, {1, 3 * kMiB, kMiB}},  // a MiB of two tensors
      {{1, 3 * kMiB, kMiB}, {1, 4 * kMiB, 64}},          // the second in a gap
  };
  for (const std::vector<RemoteWeightSlice>& slices : all) {
    EXPECT_THAT(known_.Of(slices), IsEmpty());
  }
}

TEST_F(KnownDigestsTest, Of_RandomSlices_RightOrEmpty) {
  Random random(TestSeed(20261130));
  int found = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<RemoteWeightSlice> slices;
    std::string content;
    for (int i = 0; i < 2; ++i) {
      const auto& [offset, bytes] =
          places_[static_cast<size_t>(random.Between(0, static_cast<int64_t>(places_.size()) - 1))];
      const int64_t begin = random.Between(0, 2) * kMiB + (random.Between(0, 7) == 0 ? 64 : 0);
      const int64_t most = std::max<int64_t>(1, bytes - begin);
      const int64_t size = random.Between(0, 1) == 0 ? most : std::min(most, kMiB);
      slices.push_back({static_cast<int32_t>(random.Between(0, 1)), offset + begin, size});
      content += Content(slices.back());
    }
    const std::vector<Sha256Digest> got = known_.Of(slices);
    if (got.empty()) continue;
    ++found;
    ASSERT_EQ(got, DigestsOf(content));
  }
  EXPECT_GT(found, 20);
}

}  // namespace
}  // namespace weft
