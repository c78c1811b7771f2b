#include "worker/weights/weight_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int64_t kQuota = 64 << 20;

std::vector<uint8_t> Pattern(int64_t bytes, uint8_t seed) {
  std::vector<uint8_t> data(static_cast<size_t>(bytes));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(seed + i * 7 + i / 251);
  return data;
}

Sha256Digest KeyOf(uint8_t number) { return Sha256Digest{{number}}; }

class WeightCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<WeightCache> Open(int64_t quota = kQuota) {
    auto cache = WeightCache::Open(folder_.path() + "/cache", quota, logger_);
    EXPECT_THAT(cache, IsOk());
    return cache.ok() ? *std::move(cache) : nullptr;
  }

  void Store(WeightCache& cache, uint8_t key, const std::vector<uint8_t>& data) {
    auto writer = cache.Start(KeyOf(key), static_cast<int64_t>(data.size()));
    ASSERT_THAT(writer, IsOk());
    const size_t half = data.size() / 2;
    ASSERT_THAT((*writer)->Append(absl::MakeConstSpan(data).first(half)), IsOk());
    ASSERT_THAT((*writer)->Append(absl::MakeConstSpan(data).subspan(half)), IsOk());
    ASSERT_THAT(cache.Commit(KeyOf(key), Sha256::Of(data), *std::move(writer)), IsOk());
  }

  absl::Status Read(WeightCache& cache, uint8_t key, int64_t bytes, std::vector<uint8_t>& data) {
    data.assign(static_cast<size_t>(bytes), 0);
    return cache.Read(KeyOf(key), bytes, [&](int64_t offset, absl::Span<const uint8_t> piece) {
      std::copy(piece.begin(), piece.end(), data.begin() + offset);
      return absl::OkStatus();
    });
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_.path() + "/cache")) {
      files.push_back(entry.path().string());
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

TEST_F(WeightCacheTest, Read_UnknownKey_NotFound) {
  std::vector<uint8_t> read;
  EXPECT_THAT(Read(*Open(), 9, 10, read), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(WeightCacheTest, Writer_NotCommitted_LeavesNothing) {
  const auto cache = Open();
  {
    auto writer = cache->Start(KeyOf(1), 100);
    ASSERT_THAT(writer, IsOk());
    ASSERT_THAT((*writer)->Append(Pattern(100, 1)), IsOk());
  }
  EXPECT_TRUE(Files().empty());
}

TEST_F(WeightCacheTest, Read_EveryDamage_IsFoundAndRemoved) {
  const std::vector<uint8_t> data = Pattern(10'000, 5);
  const auto cache = Open();
  for (const int64_t at : {0, 8, 16, 40, 64, 5000, 10'063}) {
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
    // Bytes 48 to 63 of the header mean nothing.
    EXPECT_THAT(Read(*cache, 1, 10'000, read), StatusIs(absl::StatusCode::kDataLoss)) << at;
    EXPECT_TRUE(Files().empty()) << at;
  }
}

TEST_F(WeightCacheTest, Read_Truncated_IsFoundAndRemoved) {
  const std::vector<uint8_t> data = Pattern(10'000, 5);
  const auto cache = Open();
  for (const int64_t size : {0, 10, 63, 64, 9'000, 10'063}) {
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
  const auto cache = Open(3500);
  Store(*cache, 1, Pattern(1000, 1));
  Store(*cache, 2, Pattern(1000, 2));
  Store(*cache, 3, Pattern(1000, 3));
  // Times of files may be as coarse as a clock tick: set them apart.
  const auto now = fs::file_time_type::clock::now();
  for (const std::string& file : Files()) fs::last_write_time(file, now - std::chrono::hours(1));
  std::vector<uint8_t> read;
  ASSERT_THAT(Read(*cache, 1, 1000, read), IsOk());  // used now
  Store(*cache, 4, Pattern(1000, 4));
  EXPECT_LE(cache->used_bytes(), 3500);
  EXPECT_THAT(Read(*cache, 1, 1000, read), IsOk());
  EXPECT_THAT(Read(*cache, 4, 1000, read), IsOk());
}

TEST_F(WeightCacheTest, Start_LargerThanQuota_Refused) {
  EXPECT_THAT(Open(1000)->Start(KeyOf(1), 1001),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("quota of 1000")));
}

TEST_F(WeightCacheTest, Open_WhereNothingCanBeWritten_NamesTheFolder) {
  std::ofstream(folder_.path() + "/file") << "x";
  EXPECT_THAT(WeightCache::Open(folder_.path() + "/file/cache", kQuota, logger_),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("/file/cache")));
}

TEST_F(WeightCacheTest, Open_OldUnfinishedFiles_AreRemoved) {
  Open();
  const std::string old = folder_.path() + "/cache/x.weight.1.0.part";
  const std::string young = folder_.path() + "/cache/y.weight.2.0.part";
  std::ofstream(old) << "x";
  std::ofstream(young) << "x";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(48));
  Open();
  EXPECT_EQ(Files(), std::vector<std::string>{young});
}

}  // namespace
}  // namespace weft
