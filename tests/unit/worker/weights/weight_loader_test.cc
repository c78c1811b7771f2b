#include "worker/weights/weight_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/mapped_file.h"
#include "common/cpu/cpu_device.h"
#include "common/digest/file_identity.h"
#include "tests/support/fake_device.h"
#include "tests/support/golden_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// Device 0 is the processor, which uses files where they are mapped; device 1 must get copies.
class WeightLoaderTest : public ::testing::Test {
 protected:
  WeightLoaderTest() : fake_(FakeDeviceOptions()) {
    path_ = folder_.File("model.gguf");
    std::filesystem::copy_file(TestDataFolder() + "/models/llama-gqa/model.gguf", path_);
    cpu_ = *CpuDevice::Create(CpuDeviceOptions());
    devices_ = {cpu_.get(), &fake_};
    file_ = *MappedFile::Open(path_);
    size_ = static_cast<int64_t>(file_->bytes().size());
    manifest_.files.push_back({path_, size_, IdentifyGguf(*file_)->digest});
    // Tensor data is at the end; any bytes will do.
    const int64_t start = (size_ - 100'000) / 64 * 64;
    manifest_.weights.push_back({0, 0, 4096, {{0, start, 4096}}, "whole"});
    manifest_.weights.push_back({1, 1, 4096, {{0, start + 4096, 4096}}, "copied"});
    manifest_.weights.push_back(
        {2, 0, 2048, {{0, start + 64, 1024}, {0, start + 9000, 1024}}, "of two slices"});
  }

  std::unique_ptr<WeightLoader> NewLoader(WeightCache* cache = nullptr) {
    return std::make_unique<WeightLoader>(devices_, buffers_, files_, cache);
  }

  std::vector<uint8_t> Wanted(const WeightEntry& entry) const {
    std::vector<uint8_t> bytes;
    for (const FileSlice& slice : entry.slices) {
      const auto piece = file_->bytes().subspan(static_cast<size_t>(slice.offset),
                                                static_cast<size_t>(slice.bytes));
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
    return bytes;
  }

  void ExpectLoaded(const LoadResult& result) {
    ASSERT_EQ(result.items.size(), manifest_.weights.size());
    for (size_t i = 0; i < result.items.size(); ++i) {
      const std::vector<uint8_t> wanted = Wanted(manifest_.weights[i]);
      std::vector<uint8_t> got(wanted.size());
      const auto buffer = buffers_.Find(result.items[i].buffer);
      ASSERT_THAT(buffer, IsOk());
      ASSERT_THAT(
          buffer->buffer->Get(result.items[i].offset, got.data(), static_cast<int64_t>(got.size())),
          IsOk());
      EXPECT_EQ(got, wanted) << "weight " << i;
    }
  }

  // Sends all open weights in pieces of 1000 bytes.
  void SendAll(WeightLoader& loader, const LoadResult& result) {
    for (size_t i = 0; i < result.items.size(); ++i) {
      if (result.items[i].origin != WeightOrigin::kStream) continue;
      const std::vector<uint8_t> bytes = Wanted(manifest_.weights[i]);
      for (size_t at = 0; at < bytes.size(); at += 1000) {
        const auto piece = absl::MakeConstSpan(bytes).subspan(at, 1000);
        ASSERT_THAT(loader.Write(result.items[i].weight, static_cast<int64_t>(at), piece), IsOk());
      }
      ASSERT_THAT(loader.Finish(result.items[i].weight, Sha256::Of(bytes)), IsOk());
    }
  }

  TemporaryFolder folder_;
  Logger logger_{"test", LogLevel::kError};
  std::string path_;
  int64_t size_ = 0;
  std::unique_ptr<CpuDevice> cpu_;
  FakeDevice fake_;
  std::vector<Device*> devices_;
  std::unique_ptr<MappedFile> file_;
  LoadManifest manifest_;
  ModelFiles files_;
  BufferTable buffers_{1000};
};

TEST_F(WeightLoaderTest, Load_FileVisible_UsesItWhereItLies) {
  int64_t last = 0;
  int64_t total = 0;
  const auto loader = NewLoader();
  const auto result = loader->Load(manifest_, false, [&](int64_t done, int64_t all) {
    EXPECT_GE(done, last);
    last = done;
    total = all;
    return true;
  });
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(last, 4096 + 4096 + 2048);
  EXPECT_EQ(total, last);
  EXPECT_EQ(result->remark, "");
  EXPECT_EQ(loader->open_count(), 0);
  ExpectLoaded(*result);
  // The mapped file is no memory of the session.
  EXPECT_EQ(buffers_.bytes(), 4096 + 2048);
  EXPECT_THAT(buffers_.FindWritable(result->items[0].buffer),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(WeightLoaderTest, Load_IgnoringFiles_WaitsForTheStream) {
  const auto loader = NewLoader();
  const auto result = loader->Load(manifest_, true, nullptr);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(loader->open_count(), 3);
  SendAll(*loader, *result);
  EXPECT_EQ(loader->open_count(), 0);
  ExpectLoaded(*result);
}

TEST_F(WeightLoaderTest, Load_OtherContentUnderThatPath_IsNotUsed) {
  {
    std::fstream stream(path_, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(20);
    stream.put('\x7f');
  }
  const auto result = NewLoader()->Load(manifest_, false, nullptr);
  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(result->remark, HasSubstr(path_));
  for (const LoadedItem& item : result->items) EXPECT_EQ(item.origin, WeightOrigin::kStream);
}

TEST_F(WeightLoaderTest, Load_OtherSize_IsNotUsed) {
  std::ofstream(path_, std::ios::app) << "x";
  const auto result = NewLoader()->Load(manifest_, false, nullptr);
  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(result->remark, HasSubstr("at the coordinator"));
}

TEST_F(WeightLoaderTest, Load_SecondTimeWithACache_NeedsNoStream) {
  const auto cache = *WeightCache::Open(folder_.File("cache"), 1 << 20, logger_);
  auto loader = NewLoader(cache.get());
  auto result = loader->Load(manifest_, true, nullptr);
  ASSERT_THAT(result, IsOk());
  SendAll(*loader, *result);
  loader = NewLoader(cache.get());
  result = loader->Load(manifest_, true, nullptr);
  ASSERT_THAT(result, IsOk());
  for (const LoadedItem& item : result->items) EXPECT_EQ(item.origin, WeightOrigin::kCache);
  ExpectLoaded(*result);
}

TEST_F(WeightLoaderTest, Load_DamagedCache_IsFetchedAgain) {
  const auto cache = *WeightCache::Open(folder_.File("cache"), 1 << 20, logger_);
  auto loader = NewLoader(cache.get());
  auto result = loader->Load(manifest_, true, nullptr);
  ASSERT_THAT(result, IsOk());
  SendAll(*loader, *result);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.File("cache"))) {
    std::fstream stream(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(200);
    stream.put('\x55');
    stream.put('\x56');
  }
  loader = NewLoader(cache.get());
  result = loader->Load(manifest_, true, nullptr);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(loader->open_count(), 3);
  SendAll(*loader, *result);
  ExpectLoaded(*result);
}

TEST_F(WeightLoaderTest, Finish_WrongDigest_IsDataLossAndStartsAgain) {
  const auto loader = NewLoader();
  const auto result = loader->Load(manifest_, true, nullptr);
  ASSERT_THAT(result, IsOk());
  const std::vector<uint8_t> bytes = Wanted(manifest_.weights[0]);
  ASSERT_THAT(loader->Write(0, 0, bytes), IsOk());
  EXPECT_THAT(loader->Finish(0, Sha256::Of(absl::MakeConstSpan(bytes).first(10))),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("'whole'")));
  ASSERT_THAT(loader->Write(0, 0, bytes), IsOk());
  EXPECT_THAT(loader->Finish(0, Sha256::Of(bytes)), IsOk());
}

TEST_F(WeightLoaderTest, Write_OutOfOrderTooMuchOrUnknown_IsRefused) {
  const auto loader = NewLoader();
  ASSERT_THAT(loader->Load(manifest_, true, nullptr), IsOk());
  const std::vector<uint8_t> bytes(5000, 1);
  EXPECT_THAT(loader->Write(0, 0, bytes), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(loader->Write(0, 1, absl::MakeConstSpan(bytes).first(10)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want them at 0")));
  EXPECT_THAT(loader->Write(0, -1, absl::MakeConstSpan(bytes).first(10)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(loader->Write(77, 0, bytes), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(loader->Finish(0, Sha256::Of(bytes)), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(WeightLoaderTest, Load_NoMemory_NamesTheWeight) {
  manifest_.weights[1].bytes = int64_t{1} << 40;
  EXPECT_THAT(NewLoader()->Load(manifest_, false, nullptr),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("'copied'")));
}

TEST_F(WeightLoaderTest, Load_CancelledByProgress_Ends) {
  EXPECT_THAT(NewLoader()->Load(manifest_, false, [](int64_t, int64_t) { return false; }),
              StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace weft
