// Two workers' ends of a transfer, over ports of one process.
#include "worker/weights/weight_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/cpu/cpu_device.h"
#include "common/transport/loopback/loopback_network.h"
#include "rpc_backend/protocol/message_kinds.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Clock::TimePoint Late() { return SystemClock().Now() + std::chrono::seconds(60); }

// Port 0 takes, port 1 gives.
class WeightExchangeTest : public ::testing::Test {
 protected:
  WeightExchangeTest() {
    for (int32_t number = 0; number < 2; ++number) {
      transports_[number] = network_.NewTransport();
      ports_[number] =
          *transports_[number]->NewPort({.epoch = 1, .own_number = number, .limits = {}});
    }
    EXPECT_THAT(ports_[1]->Expect({.number = 0, .name = "taker", .token = {}}), IsOk());
    std::thread await([this] { ports_[1]->AwaitPeers(Late()).IgnoreError(); });
    EXPECT_THAT(ports_[0]->Connect({.number = 1, .name = "giver", .token = {}},
                                   ports_[1]->address(), Late()),
                IsOk());
    await.join();
    for (int i = 0; i < 2; ++i) {
      std::string content((3 << 20) + 10 * i, '\0');
      for (size_t k = 0; k < content.size(); ++k) {
        content[k] = static_cast<char>(k * 7 + k / 251 + static_cast<size_t>(i));
      }
      contents_.push_back(content);
    }
    device_ = *CpuDevice::Create(CpuDeviceOptions());
  }

  std::vector<Sha256Digest> DigestsOf(size_t weight) const {
    std::vector<Sha256Digest> digests;
    for (size_t at = 0; at < contents_[weight].size(); at += kWeightPieceBytes) {
      Sha256 digest;
      digest.Update(std::string_view(contents_[weight]).substr(at, kWeightPieceBytes));
      digests.push_back(digest.Finish());
    }
    return digests;
  }

  WeightTransfer Transfer(int32_t peer) {
    WeightTransfer transfer;
    transfer.epoch = 1;
    transfer.peer = peer;
    transfer.observer = 1;
    transfer.number = 5;
    transfer.stop = [this] { return stop_.load(); };
    return transfer;
  }

  // Both weights open, with digests.
  void Open(OpenWeights& open) {
    for (size_t i = 0; i < 2; ++i) {
      const auto bytes = static_cast<int64_t>(contents_[i].size());
      buffers_.emplace_back(*device_->buffer_type().Allocate(bytes, BufferUsage::kWeights));
      ASSERT_THAT(open.Add(static_cast<int32_t>(i),
                           {buffers_.back(),
                            "w0.cpu0",
                            "weight" + std::to_string(i),
                            {Sha256Digest{{static_cast<uint8_t>(i)}}, bytes, DigestsOf(i)}}),
                  IsOk());
    }
  }

  absl::StatusOr<std::vector<FailedTake>> Take(OpenWeights& open) {
    const std::vector<WeightToTake> weights = {{0, {}}, {1, {}}};
    return TakeWeights(*ports_[0], Transfer(1), open, weights,
                       [this](int64_t bytes) { came_ += bytes; });
  }

  // What a peer says it has: content that a test may have damaged.
  absl::Status Give() {
    const std::vector<WeightSpan> spans = {{(3 << 20), 0}, {(3 << 20) + 10, 0}};
    const PieceReader reader = [this](size_t weight, int64_t offset, int64_t bytes,
                                      std::vector<absl::Span<const uint8_t>>& parts) {
      if (offset >= fails_at_) return absl::DataLossError("a bad disk");
      // In two parts.
      const auto* data = reinterpret_cast<const uint8_t*>(given_[weight].data()) + offset;
      parts.emplace_back(data, 3);
      parts.emplace_back(data + 3, static_cast<size_t>(bytes - 3));
      return absl::OkStatus();
    };
    return SendWeightPieces(*ports_[1], Transfer(0), spans, reader, nullptr);
  }

  std::string Taken(size_t weight) {
    std::string got(contents_[weight].size(), '\0');
    EXPECT_THAT(buffers_[weight]->Get(0, got.data(), static_cast<int64_t>(got.size())), IsOk());
    return got;
  }

  LoopbackNetwork network_;
  std::unique_ptr<Transport> transports_[2];
  std::unique_ptr<MessagePort> ports_[2];
  std::unique_ptr<CpuDevice> device_;
  std::vector<std::string> contents_;
  std::vector<std::string> given_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
  int64_t fails_at_ = int64_t{1} << 40;
  int64_t came_ = 0;
  std::atomic<bool> stop_ = false;
};

TEST_F(WeightExchangeTest, Take_EverythingRight_Complete) {
  given_ = contents_;
  OpenWeights open(nullptr);
  Open(open);
  std::thread giver([this] { EXPECT_THAT(Give(), IsOk()); });
  const auto failed = Take(open);
  giver.join();
  ASSERT_THAT(failed, IsOk());
  EXPECT_THAT(*failed, IsEmpty());
  EXPECT_EQ(open.count(), 0);
  EXPECT_EQ(came_, (6 << 20) + 10);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(Taken(i) == contents_[i]);
}

TEST_F(WeightExchangeTest, Take_CorruptingPeer_OnlyThatWeightFails) {
  given_ = contents_;
  given_[0][(2 << 20) + 17] ^= 1;
  OpenWeights open(nullptr);
  Open(open);
  std::thread giver([this] { EXPECT_THAT(Give(), IsOk()); });
  const auto failed = Take(open);
  giver.join();
  ASSERT_THAT(failed, IsOk());
  ASSERT_EQ(failed->size(), 1u);
  EXPECT_EQ((*failed)[0].weight, 0);
  EXPECT_EQ((*failed)[0].here, 2 << 20);
  EXPECT_THAT((*failed)[0].reason, HasSubstr("'weight0' on w0.cpu0"));
  EXPECT_TRUE(Taken(1) == contents_[1]);
}

TEST_F(WeightExchangeTest, Take_PeerGaveUp_TheRestFailsAtOnce) {
  given_ = contents_;
  fails_at_ = 1 << 20;
  OpenWeights open(nullptr);
  Open(open);
  std::thread giver([this] {
    EXPECT_THAT(Give(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("disk")));
    EXPECT_THAT(EndWeightPieces(*ports_[1], Transfer(0)), IsOk());
  });
  const auto failed = Take(open);
  giver.join();
  ASSERT_THAT(failed, IsOk());
  ASSERT_EQ(failed->size(), 2u);
  EXPECT_EQ((*failed)[0].here, 1 << 20);
  EXPECT_EQ((*failed)[1].here, 0);
  EXPECT_THAT((*failed)[1].reason, HasSubstr("gave up"));
}

TEST_F(WeightExchangeTest, Take_PeerDies_NamesItAndKeepsWhatCame) {
  OpenWeights open(nullptr);
  Open(open);
  const MessageHeader first{
      .epoch = 1, .kind = static_cast<uint32_t>(MessageKind::kWeights), .step = 5, .id = 0};
  const auto all = absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(contents_[0].data()),
                                       contents_[0].size());
  absl::StatusOr<std::vector<FailedTake>> failed = absl::UnknownError("");
  std::thread taker([&] { failed = Take(open); });
  ASSERT_THAT(SendBytes(*ports_[1], 0, first, all.first(kWeightPieceBytes)), IsOk());
  while (open.Here(0) == 0) ports_[1]->Progress();
  ports_[1].reset();
  taker.join();
  ASSERT_THAT(failed, IsOk());
  ASSERT_EQ(failed->size(), 2u);
  EXPECT_EQ((*failed)[0].here, 1 << 20);
  EXPECT_THAT((*failed)[0].reason, HasSubstr("giver"));
}

TEST_F(WeightExchangeTest, Take_PieceOfAnotherSize_IsNotTaken) {
  OpenWeights open(nullptr);
  Open(open);
  const MessageHeader first{
      .epoch = 1, .kind = static_cast<uint32_t>(MessageKind::kWeights), .step = 5, .id = 0};
  ASSERT_THAT(SendBytes(*ports_[1], 0, first, std::vector<uint8_t>(100)), IsOk());
  const auto failed = Take(open);
  ASSERT_THAT(failed, IsOk());
  EXPECT_EQ(failed->size(), 2u);
  EXPECT_THAT((*failed)[0].reason, HasSubstr("100 bytes instead of 1048576"));
}

TEST_F(WeightExchangeTest, Take_Stopped_Ends) {
  OpenWeights open(nullptr);
  Open(open);
  stop_ = true;
  EXPECT_THAT(Take(open), StatusIs(absl::StatusCode::kCancelled));
  given_ = contents_;
  EXPECT_THAT(Give(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(WeightExchangeTest, Take_NothingComes_FailsAfterAWhile) {
  OpenWeights open(nullptr);
  Open(open);
  WeightTransfer transfer = Transfer(1);
  transfer.stall = std::chrono::milliseconds(50);
  const std::vector<WeightToTake> weights = {{1, {}}};
  const auto failed = TakeWeights(*ports_[0], transfer, open, weights, nullptr);
  ASSERT_THAT(failed, IsOk());
  EXPECT_EQ(failed->size(), 1u);
}

// What a worker gives comes from its files and its cache, of what its coordinator named.
TEST_F(WeightExchangeTest, Give_NotHereOrBadStarts_NamesIt) {
  LoadManifest manifest;
  manifest.files = {{"/nowhere/model.gguf", 10 << 20, Sha256Digest{{7}}, 0}};
  for (int32_t i = 0; i < 2; ++i) {
    const auto bytes = static_cast<int64_t>(contents_[static_cast<size_t>(i)].size());
    manifest.weights.push_back({i, 0, bytes, {{0, i * (4 << 20), bytes}}, "weight", {}});
  }
  ModelFiles files;
  const WeightSources sources(manifest, false, files, nullptr);
  EXPECT_THAT(sources.remark(), HasSubstr("/nowhere"));
  const std::vector<int64_t> starts = {0, 0};
  EXPECT_THAT(GiveWeights(*ports_[1], Transfer(0), sources, manifest, starts),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'weight'")));
  for (const std::vector<int64_t>& bad : {std::vector<int64_t>{0}, {0, 5}, {-1, 0}, {0, 9 << 20}}) {
    EXPECT_THAT(GiveWeights(*ports_[1], Transfer(0), sources, manifest, bad),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST_F(WeightExchangeTest, Give_FromTheCache_EqualBytes) {
  TemporaryFolder folder;
  Logger logger("test", LogLevel::kError);
  const auto cache = *WeightCache::Open(folder.File("cache"), 64 << 20, logger);
  LoadManifest manifest;
  manifest.files = {{"/nowhere/model.gguf", 10 << 20, Sha256Digest{{7}}, 0}};
  for (int32_t i = 0; i < 2; ++i) {
    const std::string& content = contents_[static_cast<size_t>(i)];
    const auto bytes = static_cast<int64_t>(content.size());
    manifest.weights.push_back({i, 0, bytes, {{0, i * (4 << 20), bytes}}, "weight", {}});
    auto writer = *cache->Start(KeyOf(manifest, manifest.weights.back()));
    const std::vector<Sha256Digest> digests = DigestsOf(static_cast<size_t>(i));
    for (size_t k = 0; k < digests.size(); ++k) {
      const std::string piece = content.substr(k * kWeightPieceBytes, kWeightPieceBytes);
      ASSERT_THAT(
          writer->Write(static_cast<int64_t>(k),
                        {reinterpret_cast<const uint8_t*>(piece.data()), piece.size()}, digests[k]),
          IsOk());
    }
    ASSERT_THAT(cache->Commit(std::move(writer)), IsOk());
  }
  ModelFiles files;
  const WeightSources sources(manifest, false, files, cache.get());
  OpenWeights open(nullptr);
  Open(open);
  std::thread giver([&] {
    const std::vector<int64_t> starts = {0, 0};
    const auto given = GiveWeights(*ports_[1], Transfer(0), sources, manifest, starts);
    EXPECT_THAT(given, IsOk());
    EXPECT_EQ(given.value_or(0), (6 << 20) + 10);
  });
  const auto failed = Take(open);
  giver.join();
  ASSERT_THAT(failed, IsOk());
  EXPECT_THAT(*failed, IsEmpty());
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(Taken(i) == contents_[i]);
}

}  // namespace
}  // namespace weft
