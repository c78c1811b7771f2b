#include "worker/weights/weight_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/base/status_macros.h"
#include "rpc_backend/protocol/weight_pieces.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kQuota = 64 << 20;

std::vector<uint8_t> Pattern(int64_t bytes, uint8_t seed) {
  std::vector<uint8_t> data(static_cast<size_t>(bytes));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(seed + i * 7 + i / 251);
  return data;
}

std::vector<Sha256Digest> DigestsOf(const std::vector<uint8_t>& data) {
  std::vector<Sha256Digest> digests;
  for (size_t at = 0; at < data.size(); at += kWeightPieceBytes) {
    digests.push_back(Sha256::Of(absl::MakeConstSpan(data).subspan(at, kWeightPieceBytes)));
  }
  return digests;
}

WeightKey KeyOf(uint8_t number, int64_t bytes) { return {Sha256Digest{{number}}, bytes, {}}; }

class WeightCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<WeightCache> Open(int64_t quota = kQuota) {
    auto cache = WeightCache::Open(folder_.path() + "/cache", quota, logger_);
    EXPECT_THAT(cache, IsOk());
    return cache.ok() ? *std::move(cache) : nullptr;
  }

  static void Write(WeightCache::Writer& writer, const std::vector<uint8_t>& data, int64_t index) {
    const auto piece = absl::MakeConstSpan(data).subspan(
        static_cast<size_t>(index * kWeightPieceBytes), kWeightPieceBytes);
    ASSERT_THAT(writer.Write(index, piece, Sha256::Of(piece)), IsOk());
  }

  // From the last piece to the first: order does not matter.
  void Store(WeightCache& cache, uint8_t number, const std::vector<uint8_t>& data) {
    const auto bytes = static_cast<int64_t>(data.size());
    auto writer = cache.Start(KeyOf(number, bytes));
    ASSERT_THAT(writer, IsOk());
    for (int64_t i = WeightPieceCount(bytes) - 1; i >= 0; --i) Write(**writer, data, i);
    ASSERT_THAT(cache.Commit(*std::move(writer)), IsOk());
  }

  // As a loader does: pieces are compared with their digests.
  static absl::Status Read(WeightCache& cache, const WeightKey& key, std::vector<uint8_t>& data) {
    data.clear();
    ASSIGN_OR_RETURN(const auto entry, cache.Find(key));
    data.assign(entry->content().begin(), entry->content().end());
    if (absl::MakeConstSpan(DigestsOf(data)) == entry->digests()) return absl::OkStatus();
    cache.Remove(*entry);
    return absl::DataLossError("a piece");
  }
  static absl::Status Read(WeightCache& cache, uint8_t number, int64_t bytes,
                           std::vector<uint8_t>& data) {
    return Read(cache, KeyOf(number, bytes), data);
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_.path() + "/cache")) {
      const std::string path = entry.path().string();
      if (!path.ends_with(".alias")) files.push_back(path);
    }
    return files;
  }

  TemporaryFolder folder_;
  Logger logger_{"test", LogLevel::kError};
};

TEST_F(WeightCacheTest, Read_AfterCommit_GivesTheBytes) {
  const std::vector<uint8_t> data = Pattern(3'000'001, 5);
  std::vector<uint8_t> read;
  Store(*Open(), 1, data);
  const auto again = Open();  // another process
  EXPECT_THAT(Read(*again, 1, static_cast<int64_t>(data.size()), read), IsOk());
  EXPECT_EQ(read, data);
}

TEST_F(WeightCacheTest, Open_NamesOfEntriesThatAreGone_AreRemoved) {
  Store(*Open(), 1, Pattern(1000, 5));
  fs::remove(Files().at(0));
  Open();
  EXPECT_TRUE(fs::is_empty(folder_.path() + "/cache"));
}

TEST_F(WeightCacheTest, Read_UnknownKey_NotFound) {
  std::vector<uint8_t> read;
  EXPECT_THAT(Read(*Open(), 9, 10, read), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(WeightCacheTest, Find_ByDigests_WhateverTheRequestWas) {
  const std::vector<uint8_t> data = Pattern(2'500'000, 5);
  const auto cache = Open();
  Store(*cache, 1, data);
  std::vector<uint8_t> read;
  WeightKey key = KeyOf(2, 2'500'000);
  EXPECT_THAT(Read(*cache, key, read), StatusIs(absl::StatusCode::kNotFound));
  key.digests = DigestsOf(data);
  EXPECT_THAT(Read(*cache, key, read), IsOk());
  EXPECT_EQ(read, data);
  // The same request for a file that has changed since.
  key.request = KeyOf(1, 0).request;
  key.digests[1] = Sha256Digest();
  EXPECT_THAT(Read(*cache, key, read), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(WeightCacheTest, Writer_NotCommitted_KeepsWhatWasWritten) {
  const std::vector<uint8_t> data = Pattern(3'000'000, 5);
  WeightKey key = KeyOf(1, 3'000'000);
  const auto cache = Open();
  EXPECT_THAT(cache->Unfinished(key), StatusIs(absl::StatusCode::kNotFound));
  {
    const auto writer = *cache->Start(key);
    Write(*writer, data, 0);
    Write(*writer, data, 2);
    EXPECT_THAT(cache->Start(key), StatusIs(absl::StatusCode::kUnavailable));  // one at a time
    std::vector<uint8_t> seen;
    EXPECT_TRUE((*cache->Unfinished(key))->ReadKept(0, seen));
  }
  EXPECT_EQ(Files().size(), 1u);
  std::vector<uint8_t> read;
  EXPECT_THAT(Read(*cache, key, read), StatusIs(absl::StatusCode::kNotFound));
  {
    // The first piece of the file is another one now.
    key.digests = DigestsOf(data);
    key.digests[0] = Sha256Digest{{1}};
    const auto writer = *cache->Start(key);
    EXPECT_FALSE(writer->ReadKept(0, read));
    EXPECT_TRUE(writer->ReadKept(2, read));
  }
  key.digests.clear();
  auto writer = *cache->Start(key);
  ASSERT_TRUE(writer->ReadKept(0, read));
  EXPECT_TRUE(std::equal(read.begin(), read.end(), data.begin()));
  EXPECT_FALSE(writer->ReadKept(1, read));
  EXPECT_TRUE(writer->ReadKept(2, read));
  EXPECT_FALSE(writer->ReadKept(3, read));
  EXPECT_FALSE(writer->ReadKept(-1, read));
  Write(*writer, data, 1);
  ASSERT_THAT(cache->Commit(std::move(writer)), IsOk());
  EXPECT_THAT(Read(*cache, key, read), IsOk());
  EXPECT_EQ(read, data);
}

TEST_F(WeightCacheTest, ReadKept_DamagedPiece_IsNone) {
  const std::vector<uint8_t> data = Pattern(1'500'000, 5);
  const auto cache = Open();
  Write(**cache->Start(KeyOf(1, 1'500'000)), data, 0);
  {
    std::fstream stream(Files().at(0), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(5000);
    stream.put('x');
    stream.put('y');
  }
  std::vector<uint8_t> read;
  EXPECT_FALSE((*cache->Start(KeyOf(1, 1'500'000)))->ReadKept(0, read));
}

TEST_F(WeightCacheTest, Commit_PieceMissing_Refused) {
  const std::vector<uint8_t> data = Pattern(1'500'000, 5);
  const auto cache = Open();
  auto writer = *cache->Start(KeyOf(1, 1'500'000));
  EXPECT_THAT(writer->Write(1, data, Sha256Digest()), StatusIs(absl::StatusCode::kInvalidArgument));
  Write(*writer, data, 0);
  EXPECT_THAT(cache->Commit(std::move(writer)), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(WeightCacheTest, Read_EveryDamage_IsFoundAndRemoved) {
  const std::vector<uint8_t> data = Pattern(10'000, 5);
  const auto cache = Open();
  for (const int64_t at : {0, 8, 16, 40, 64, 5000, 10'127}) {
    Store(*cache, 1, data);
    const std::string file = Files().at(0);
    {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(at);
      const char old = static_cast<char>(stream.get());
      stream.seekp(at);
      stream.put(static_cast<char>(old ^ 1));
    }
    std::vector<uint8_t> read;
    EXPECT_THAT(Read(*cache, 1, 10'000, read), StatusIs(absl::StatusCode::kDataLoss)) << at;
    EXPECT_TRUE(Files().empty()) << at;
  }
}

TEST_F(WeightCacheTest, Read_Truncated_IsFoundAndRemoved) {
  const std::vector<uint8_t> data = Pattern(10'000, 5);
  const auto cache = Open();
  for (const int64_t size : {0, 10, 63, 64, 9'000, 10'127}) {
    Store(*cache, 1, data);
    fs::resize_file(Files().at(0), static_cast<uintmax_t>(size));
    std::vector<uint8_t> read;
    EXPECT_THAT(Read(*cache, 1, 10'000, read), StatusIs(absl::StatusCode::kDataLoss)) << size;
    EXPECT_TRUE(Files().empty()) << size;
  }
}

TEST_F(WeightCacheTest, Read_OtherSizeThanStored_IsDataLoss) {
  const auto cache = Open();
  Store(*cache, 1, Pattern(1000, 5));
  std::vector<uint8_t> read;
  EXPECT_THAT(Read(*cache, 1, 999, read), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(WeightCacheTest, Quota_BeyondIt_TheLeastRecentlyUsedGoes) {
  const auto cache = Open(3800);
  Store(*cache, 1, Pattern(1000, 1));
  Store(*cache, 2, Pattern(1000, 2));
  Store(*cache, 3, Pattern(1000, 3));
  // Times of files may be as coarse as a clock tick: set them apart.
  const auto now = fs::file_time_type::clock::now();
  for (const std::string& file : Files()) fs::last_write_time(file, now - std::chrono::hours(1));
  std::vector<uint8_t> read;
  ASSERT_THAT(Read(*cache, 1, 1000, read), IsOk());  // used now
  Store(*cache, 4, Pattern(1000, 4));
  EXPECT_LE(cache->used_bytes(), 3800);
  EXPECT_THAT(Read(*cache, 1, 1000, read), IsOk());
  EXPECT_THAT(Read(*cache, 4, 1000, read), IsOk());
}

TEST_F(WeightCacheTest, Start_LargerThanQuota_Refused) {
  EXPECT_THAT(Open(1000)->Start(KeyOf(1, 1001)),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("quota of 1000")));
}

TEST_F(WeightCacheTest, Unwritten_IsSaidOnce_WithItsReason) {
  Logger logger("test", LogLevel::kWarning);
  auto cache = WeightCache::Open(folder_.path() + "/cache", kQuota, logger);
  ASSERT_THAT(cache, IsOk());
  const auto said = [&](const absl::Status& status) {
    testing::internal::CaptureStderr();
    (*cache)->NoteUnwritten(status);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(absl::OkStatus()), "");
  EXPECT_EQ(said(absl::UnavailableError("somebody else writes it")), "");
  EXPECT_THAT(said(absl::ResourceExhaustedError("the disk is full")),
              AllOf(HasSubstr(folder_.path() + "/cache"), HasSubstr("the disk is full")));
  EXPECT_EQ(said(absl::ResourceExhaustedError("the disk is full")), "");
}

TEST_F(WeightCacheTest, Open_WhereNothingCanBeWritten_NamesTheFolder) {
  std::ofstream(folder_.path() + "/file") << "x";
  EXPECT_THAT(WeightCache::Open(folder_.path() + "/file/cache", kQuota, logger_),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("/file/cache")));
}

TEST_F(WeightCacheTest, Open_OldUnfinishedFiles_AreRemoved) {
  Open();
  const std::string old = folder_.path() + "/cache/x.part";
  const std::string young = folder_.path() + "/cache/y.part";
  std::ofstream(old) << "x";
  std::ofstream(young) << "x";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(48));
  Open();
  EXPECT_EQ(Files(), std::vector<std::string>{young});
}

}  // namespace
}  // namespace weft
