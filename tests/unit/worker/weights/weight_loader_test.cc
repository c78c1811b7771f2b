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
#include "common/digest/weight_digests.h"
#include "common/gguf/gguf_file.h"
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
    const FileIdentity identity = *IdentifyGguf(*file_);
    manifest_.files.push_back({path_, size_, identity.digest, identity.data_offset});
    // Tensor data is at the end; any bytes will do.
    const int64_t start = (size_ - 100'000) / 64 * 64;
    manifest_.weights.push_back({0, 0, 4096, {{0, start, 4096}}, "whole", {}});
    manifest_.weights.push_back({1, 1, 4096, {{0, start + 4096, 4096}}, "copied", {}});
    manifest_.weights.push_back(
        {2, 0, 2048, {{0, start + 64, 1024}, {0, start + 9000, 1024}}, "of two slices", {}});
  }

  std::unique_ptr<WeightLoader> NewLoader(WeightCache* cache = nullptr) {
    return std::make_unique<WeightLoader>(devices_, buffers_, files_, cache, &logger_);
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

  // Sends what is open; of weights that are smaller than a piece.
  void SendAll(WeightLoader& loader, const LoadResult& result) {
    for (size_t i = 0; i < result.items.size(); ++i) {
      if (result.items[i].origin != WeightOrigin::kStream) continue;
      const std::vector<uint8_t> bytes = Wanted(manifest_.weights[i]);
      const Sha256Digest digest = Sha256::Of(bytes);
      ASSERT_THAT(loader.open().TakePiece(result.items[i].weight, 0, bytes, &digest), IsOk());
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
  EXPECT_EQ(loader->open().count(), 0);
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
  EXPECT_EQ(loader->open().count(), 3);
  SendAll(*loader, *result);
  EXPECT_EQ(loader->open().count(), 0);
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
  EXPECT_EQ(loader->open().count(), 3);
  SendAll(*loader, *result);
  ExpectLoaded(*result);
}

TEST_F(WeightLoaderTest, TakePiece_WrongDigest_IsDataLossNamingWeightAndDevice) {
  const auto loader = NewLoader();
  ASSERT_THAT(loader->Load(manifest_, true, nullptr), IsOk());
  const std::vector<uint8_t> bytes = Wanted(manifest_.weights[0]);
  const Sha256Digest wrong = Sha256::Of(absl::MakeConstSpan(bytes).first(10));
  const Sha256Digest right = Sha256::Of(bytes);
  EXPECT_THAT(
      loader->open().TakePiece(0, 0, bytes, &wrong),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("'whole' on " + devices_[0]->name())));
  EXPECT_EQ(loader->open().Here(0), 0);
  EXPECT_THAT(loader->open().TakePiece(0, 0, bytes, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(loader->open().TakePiece(0, 0, bytes, &right), IsOk());
  EXPECT_EQ(loader->open().count(), 2);
}

TEST_F(WeightLoaderTest, TakePiece_DigestsKnown_WhatTheSenderSaysDoesNotCount) {
  const std::vector<uint8_t> bytes = Wanted(manifest_.weights[0]);
  std::vector<uint8_t> other = bytes;
  other[77] ^= 1;
  const Sha256Digest of_other = Sha256::Of(other);
  manifest_.weights[0].digests = {Sha256::Of(bytes)};
  const auto loader = NewLoader();
  ASSERT_THAT(loader->Load(manifest_, true, nullptr), IsOk());
  EXPECT_THAT(loader->open().TakePiece(0, 0, other, &of_other),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(loader->open().TakePiece(0, 0, bytes, nullptr), IsOk());
  // Digests that come with the request to take.
  const std::vector<WeightToTake> of_one = {{1, {of_other}}};
  const auto spans = loader->open().Prepare(of_one);
  ASSERT_THAT(spans, IsOk());
  EXPECT_EQ((*spans)[0].bytes, 4096);
  EXPECT_EQ((*spans)[0].start, 0);
  const std::vector<WeightToTake> contrary = {{1, {Sha256::Of(bytes)}}};
  EXPECT_THAT(loader->open().Prepare(contrary), StatusIs(absl::StatusCode::kInvalidArgument));
  const std::vector<WeightToTake> too_many = {{2, {of_other, of_other}}};
  EXPECT_THAT(loader->open().Prepare(too_many), StatusIs(absl::StatusCode::kInvalidArgument));
  const std::vector<WeightToTake> unknown = {{77, {}}};
  EXPECT_THAT(loader->open().Prepare(unknown), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(WeightLoaderTest, TakePiece_NoPieceOrUnknown_IsRefused) {
  const auto loader = NewLoader();
  ASSERT_THAT(loader->Load(manifest_, true, nullptr), IsOk());
  const std::vector<uint8_t> bytes(5000, 1);
  const Sha256Digest digest = Sha256::Of(bytes);
  const auto take = [&](int32_t weight, int64_t offset, size_t count) {
    return loader->open().TakePiece(weight, offset, absl::MakeConstSpan(bytes).first(count),
                                    &digest);
  };
  EXPECT_THAT(take(0, 0, 5000), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(take(0, 0, 10), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(take(0, 1, 4095), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(take(0, -kWeightPieceBytes, 4096), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(take(0, kWeightPieceBytes, 4096), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(take(77, 0, 4096), StatusIs(absl::StatusCode::kNotFound));
}

// A weight of several pieces, of the part of the file that is large enough: all of it.
TEST_F(WeightLoaderTest, Load_AfterOneThatWasCutOff_GoesOnWhereItEnded) {
  const std::string large = folder_.File("large.bin");
  std::ofstream(large, std::ios::binary) << std::string(5 << 20, 'x') << std::string(100, 'y');
  const auto mapped = *MappedFile::Open(large);
  manifest_.files = {{large, (5 << 20) + 100, Sha256Digest{{9}}, 0}};
  manifest_.weights = {{4, 1, (5 << 20) + 100, {{0, 0, (5 << 20) + 100}}, "large", {}}};
  const auto cache = *WeightCache::Open(folder_.File("cache"), 64 << 20, logger_);
  const auto send = [&](WeightLoader& loader, int64_t index) {
    const auto piece =
        mapped->bytes().subspan(static_cast<size_t>(index * kWeightPieceBytes), kWeightPieceBytes);
    const Sha256Digest digest = Sha256::Of(piece);
    return loader.open().TakePiece(4, index * kWeightPieceBytes, piece, &digest);
  };
  {
    const auto loader = NewLoader(cache.get());
    ASSERT_THAT(loader->Load(manifest_, true, nullptr), IsOk());
    for (const int64_t index : {0, 1, 3}) ASSERT_THAT(send(*loader, index), IsOk());
  }
  const auto loader = NewLoader(cache.get());
  const auto result = loader->Load(manifest_, true, nullptr);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->items[0].here, 2 << 20);
  EXPECT_EQ(result->items[0].origin, WeightOrigin::kStream);
  for (const int64_t index : {2, 3, 4, 5}) ASSERT_THAT(send(*loader, index), IsOk());
  EXPECT_EQ(loader->open().count(), 0);
  std::vector<uint8_t> got(mapped->bytes().size());
  const auto buffer = buffers_.Find(result->items[0].buffer);
  ASSERT_THAT(buffer->buffer->Get(0, got.data(), static_cast<int64_t>(got.size())), IsOk());
  EXPECT_TRUE(absl::MakeConstSpan(got) == mapped->bytes());
  // And the cache has all of it.
  const auto again = NewLoader(cache.get())->Load(manifest_, true, nullptr);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->items[0].origin, WeightOrigin::kCache);
}

TEST_F(WeightLoaderTest, Check_DigestsKnown_DamageOfAVisibleFileShows) {
  manifest_.weights[0].digests = {Sha256::Of(Wanted(manifest_.weights[0]))};
  manifest_.weights[1].digests = {Sha256::Of(Wanted(manifest_.weights[1]))};
  {
    const auto loader = NewLoader();
    const auto result = loader->Load(manifest_, false, nullptr);
    ASSERT_THAT(result, IsOk());
    loader->check().Await();
    EXPECT_THAT(loader->check().status(), IsOk());
    // The file is still mapped: once is enough.
    manifest_.weights[1].digests = {Sha256Digest()};
    ASSERT_THAT(loader->Load(manifest_, false, nullptr), IsOk());
    loader->check().Await();
    EXPECT_THAT(loader->check().status(), IsOk());
  }
  ModelFiles fresh;
  WeightLoader loader(devices_, buffers_, fresh, nullptr, &logger_);
  ASSERT_THAT(loader.Load(manifest_, false, nullptr), IsOk());
  loader.check().Await();
  EXPECT_THAT(loader.check().status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       testing::AllOf(HasSubstr(path_), HasSubstr("'copied'"))));
}

TEST_F(WeightLoaderTest, Check_DigestsBesideTheFile_AreUsed) {
  const auto gguf = *GgufFile::Open(path_);
  WeightDigests digests = *ComputeWeightDigests(*gguf, 0, nullptr);
  const TensorDigests& last = digests.tensors.back();
  manifest_.weights = {{0, 0, last.bytes, {{0, last.offset, last.bytes}}, "tensor", {}}};
  for (const bool damaged : {false, true}) {
    if (damaged) digests.tensors.back().chunks[0].bytes[5] ^= 1;
    ASSERT_THAT(WriteWeightDigests(digests, path_), IsOk());
    ModelFiles files;
    WeightLoader loader(devices_, buffers_, files, nullptr, &logger_);
    ASSERT_THAT(loader.Load(manifest_, false, nullptr), IsOk());
    loader.check().Await();
    EXPECT_EQ(absl::IsDataLoss(loader.check().status()), damaged);
  }
}

TEST_F(WeightLoaderTest, Load_WorkerWithoutFiles_WaitsForTheStream) {
  ModelFiles none(false);
  WeightLoader loader(devices_, buffers_, none, nullptr, &logger_);
  const auto result = loader.Load(manifest_, false, nullptr);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(loader.open().count(), 3);
  EXPECT_THAT(result->remark, HasSubstr("--no-files"));
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
