#include "rpc_backend/client/remote_weights.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "rpc_backend/client/fleet_link.h"
#include "rpc_backend/client/remote_buffer.h"
#include "rpc_backend/client/remote_worker.h"
#include "rpc_backend/protocol/weight_pieces.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/rpc_backend/client/fake_worker.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RemoteWeightsTest : public ::testing::Test {
 protected:
  RemoteWeightsTest() {
    file_.resize(5'000'000);
    for (size_t i = 0; i < file_.size(); ++i) file_[i] = static_cast<char>(i * 7 + i / 251);
    files_ = {{"/model.gguf", static_cast<int64_t>(file_.size()), std::string(32, 'd'), 0}};
    items_ = {
        {.weight = 7,
         .device = 2,
         .reserve_bytes = 3'000'000,
         .slices = {{0, 100, 2'500'000}, {0, 4'000'000, 1000}},
         .name = "large"},
        {.weight = 3, .device = 0, .reserve_bytes = 128, .slices = {{0, 0, 100}}, .name = "small"},
        {.weight = 9, .device = 2, .reserve_bytes = 0, .slices = {}, .name = "empty"}};
  }

  // Worker 0, and those of `peers` behind it.
  void Connect(FakeWorker& fake, std::vector<FakeWorker*> peers = {}) {
    link_.reset();
    workers_.clear();
    RemoteWorkerOptions options = options_;
    peers.insert(peers.begin(), &fake);
    std::vector<RemoteWorker*> linked;
    for (FakeWorker* peer : peers) {
      options.address = peer->address();
      options.name = "w" + std::to_string(workers_.size());
      auto worker = RemoteWorker::Connect(options, nullptr);
      ASSERT_OK(worker);
      workers_.push_back(*std::move(worker));
      linked.push_back(workers_.back().get());
    }
    FleetLinkOptions link;
    link.transport = "grpc";
    ASSERT_OK_AND_ASSIGN(link_, FleetLink::Open(linked, link));
  }
  std::string Content(const RemoteWeightItem& item) const {
    std::string content;
    for (const RemoteWeightSlice& slice : item.slices) {
      content += file_.substr(static_cast<size_t>(slice.offset), static_cast<size_t>(slice.bytes));
    }
    return content;
  }
  static std::vector<Sha256Digest> DigestsOf(const std::string& content) {
    std::vector<Sha256Digest> digests;
    for (size_t at = 0; at < content.size(); at += kWeightPieceBytes) {
      Sha256 digest;
      digest.Update(std::string_view(content).substr(at, kWeightPieceBytes));
      digests.push_back(digest.Finish());
    }
    return digests;
  }
  absl::StatusOr<RemoteWeights> Load(const LoadRemoteWeightsOptions& options = {}) {
    if (link_ == nullptr) Connect(fake_);
    const SliceReader reader =
        [this](const RemoteWeightSlice& slice) -> absl::StatusOr<absl::Span<const uint8_t>> {
      int64_t largest = largest_read_;
      while (slice.bytes > largest && !largest_read_.compare_exchange_weak(largest, slice.bytes)) {
      }
      if (!read_error_.ok()) return read_error_;
      return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(file_.data()), file_.size())
          .subspan(slice.offset, slice.bytes);
    };
    return LoadRemoteWeights(*link_, 0, files_, items_, reader, options);
  }

  FakeWorker fake_;
  RemoteWorkerOptions options_ = TestWorkerOptions(fake_.address());
  std::vector<std::unique_ptr<RemoteWorker>> workers_;
  std::unique_ptr<FleetLink> link_;
  std::string file_;
  std::vector<RemoteWeightFile> files_;
  std::vector<RemoteWeightItem> items_;
  std::atomic<int64_t> largest_read_ = 0;
  absl::Status read_error_;
};

TEST_F(RemoteWeightsTest, Load_WorkerSeesFile_NothingIsSent) {
  fake_.files_visible = true;
  std::vector<int64_t> done;
  LoadRemoteWeightsOptions options;
  options.progress = [&](const RemoteLoadProgress& progress) {
    EXPECT_EQ(progress.bytes_total, 2'501'100);
    done.push_back(progress.bytes_done);
  };
  ASSERT_OK_AND_ASSIGN(const RemoteWeights loaded, Load(options));
  ASSERT_EQ(loaded.weights.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(loaded.weights[i].weight, items_[i].weight);
    EXPECT_EQ(loaded.weights[i].source, RemoteWeightSource::kFile);
    EXPECT_EQ(loaded.weights[i].offset, 64);
    EXPECT_GE(loaded.weights[i].buffer->size(), 64 + items_[i].reserve_bytes);
  }
  EXPECT_EQ(&loaded.weights[1].buffer->type(), &workers_[0]->devices()[0]->buffer_type());
  EXPECT_EQ(fake_.calls("TakeWeights"), 0);
  EXPECT_EQ(loaded.bytes_streamed, 0);
  EXPECT_THAT(done, ElementsAre(1, 2'501'100));
  EXPECT_EQ(largest_read_, 0);
}

TEST_F(RemoteWeightsTest, Load_WorkerSeesNothing_AllIsSent) {
  std::vector<int64_t> done;
  LoadRemoteWeightsOptions options;
  options.progress = [&](const RemoteLoadProgress& progress) {
    done.push_back(progress.bytes_done);
  };
  ASSERT_OK_AND_ASSIGN(const RemoteWeights loaded, Load(options));
  EXPECT_EQ(loaded.weights[0].source, RemoteWeightSource::kStream);
  EXPECT_TRUE(fake_.weight(7) == file_.substr(100, 2'500'000) + file_.substr(4'000'000, 1000));
  EXPECT_TRUE(fake_.weight(3) == file_.substr(0, 100));
  EXPECT_EQ(loaded.bytes_streamed, 2'501'100);
  EXPECT_THAT(loaded.remarks, ElementsAre("no such file"));
  EXPECT_EQ(largest_read_, 1 << 20);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), 2'501'100);
}

TEST_F(RemoteWeightsTest, Load_IgnoreFiles_AllIsSent) {
  fake_.files_visible = true;
  LoadRemoteWeightsOptions options;
  options.ignore_files = true;
  ASSERT_OK_AND_ASSIGN(const RemoteWeights loaded, Load(options));
  EXPECT_EQ(loaded.bytes_streamed, 2'501'100);
}

TEST_F(RemoteWeightsTest, Load_BadItems_RefusedBeforeAnythingIsSent) {
  const std::vector<std::function<void()>> edits = {
      [&] { files_[0].identity = "short"; }, [&] { items_[0].slices[0].offset = 4'900'000; },
      [&] { items_[0].reserve_bytes = 5; },  [&] { items_[0].device = 3; },
      [&] { items_[0].slices[0].file = 1; },
  };
  const auto items = items_;
  const auto files = files_;
  for (const auto& edit : edits) {
    edit();
    EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("worker w0 (")));
    items_ = items;
    files_ = files;
  }
  EXPECT_EQ(fake_.calls("LoadWeights"), 0);
}

TEST_F(RemoteWeightsTest, Load_ReaderFails_ItsErrorAndNothingStays) {
  read_error_ = absl::DataLossError("the disk is gone");
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the disk is gone")));
  EXPECT_TRUE(fake_.AwaitCalls("FreeBuffer", 3));
}

TEST_F(RemoteWeightsTest, Load_WorkerRefusesBytes_ItsReason) {
  fake_.fail["TakeWeights"] = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "disk full");
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(HasSubstr("worker w0 ("), HasSubstr("disk full"))));
  EXPECT_TRUE(fake_.AwaitCalls("FreeBuffer", 3));
}

TEST_F(RemoteWeightsTest, Load_Cancelled_Ends) {
  for (const char* verb : {"LoadWeights", "TakeWeights"}) {
    FakeWorker fake;
    fake.hang[verb] = true;
    Connect(fake);
    std::atomic<bool> cancel = false;
    LoadRemoteWeightsOptions options;
    options.cancel = &cancel;
    absl::Status status;
    std::thread loader([&] { status = Load(options).status(); });
    EXPECT_TRUE(fake.AwaitCalls(verb, 1));
    cancel = true;
    loader.join();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, HasSubstr(verb)));
    link_.reset();
    workers_.clear();
  }
}

TEST_F(RemoteWeightsTest, Load_NothingMoves_DeadlineExceeded) {
  for (const char* verb : {"LoadWeights", "TakeWeights"}) {
    FakeWorker fake;
    fake.hang[verb] = true;
    options_.stall_timeout = std::chrono::milliseconds(100);
    options_.disk_timeout = std::chrono::milliseconds(100);
    Connect(fake);
    EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                 AllOf(HasSubstr(verb), HasSubstr("nothing moved"))));
    link_.reset();
    workers_.clear();
  }
}

TEST_F(RemoteWeightsTest, Load_WorkerLost_ItsLoss) {
  fake_.hang["TakeWeights"] = true;
  Connect(fake_);
  absl::Status status;
  std::thread loader([&] { status = Load().status(); });
  EXPECT_TRUE(fake_.AwaitCalls("TakeWeights", 1));
  fake_.EndSession("out of here");
  loader.join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("out of here")));
}

TEST_F(RemoteWeightsTest, Load_ReplyMakesNoSense_Refused) {
  const std::vector<std::function<void(proto::LoadWeightsReply&)>> edits = {
      [](auto& reply) { reply.mutable_weights()->RemoveLast(); },
      [](auto& reply) { *reply.add_weights() = reply.weights(0); },
      [](auto& reply) { reply.mutable_weights(0)->set_weight(8); },
      [](auto& reply) { reply.mutable_weights(0)->set_offset(-64); },
      [](auto& reply) { reply.mutable_weights(0)->set_offset(int64_t{1} << 62); },
      [](auto& reply) { reply.mutable_weights(0)->set_source(proto::WEIGHT_SOURCE_UNKNOWN); },
      // One buffer on two devices.
      [](auto& reply) { reply.mutable_weights(1)->set_buffer(reply.weights(0).buffer()); },
      [](auto& reply) { reply.set_finished(false); },
      [](auto& reply) { reply.set_remark(std::string(1000000, 'r')); },
  };
  for (const auto& edit : edits) {
    FakeWorker fake;
    fake.edit_loaded = edit;
    Connect(fake);
    EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInternal, HasSubstr("makes no sense")));
    link_.reset();
    workers_.clear();
  }
}

TEST_F(RemoteWeightsTest, Take_ReplyMakesNoSense_Refused) {
  const std::vector<std::function<void(proto::TakeWeightsReply&)>> edits = {
      [](auto& reply) { reply.add_failed()->set_weight(8); },
      [](auto& reply) {
        reply.add_failed()->set_weight(7);
        reply.mutable_failed(0)->set_here(5);
      },
      [](auto& reply) {
        reply.add_failed()->set_weight(7);
        reply.mutable_failed(0)->set_here(int64_t{1} << 40);
      },
      [](auto& reply) { reply.set_finished(false); },
  };
  for (const auto& edit : edits) {
    FakeWorker fake;
    fake.edit_taken = edit;
    Connect(fake);
    EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInternal, HasSubstr("makes no sense")));
    link_.reset();
    workers_.clear();
  }
}

// The sending side is stopped in the midst then: that is no error of its own.
TEST_F(RemoteWeightsTest, Take_GivesUp_ItsReasonCounts) {
  fake_.given_up_takes = 1;
  ASSERT_OK_AND_ASSIGN(const RemoteWeights loaded, Load());
  EXPECT_THAT(loaded.remarks,
              testing::Contains(HasSubstr("the giver is lost; they are sent again")));
  FakeWorker never;
  never.given_up_takes = 100;
  Connect(never);
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDataLoss,
                               AllOf(HasSubstr("worker w0 ("), HasSubstr("the giver is lost"))));
  link_.reset();
  workers_.clear();
}

TEST_F(RemoteWeightsTest, Load_PartIsThere_OnlyTheRestIsSent) {
  fake_.here[7] = 2 << 20;
  ASSERT_OK_AND_ASSIGN(const RemoteWeights loaded, Load());
  EXPECT_EQ(loaded.bytes_streamed, 2'501'100 - (2 << 20));
  EXPECT_TRUE(fake_.weight(7) == Content(items_[0]).substr(2 << 20));
  // What no load can have left.
  for (const int64_t here : {int64_t{5}, int64_t{1} << 30}) {
    FakeWorker fake;
    fake.here[7] = here;
    Connect(fake);
    EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInternal, HasSubstr("makes no sense")));
  }
}

TEST_F(RemoteWeightsTest, Load_ArrivesDamagedOnce_SentAgainFromThere) {
  fake_.damaged_pieces = 1;
  ASSERT_OK_AND_ASSIGN(const RemoteWeights loaded, Load());
  EXPECT_TRUE(fake_.weight(7) == Content(items_[0]));
  EXPECT_THAT(loaded.remarks, Contains(HasSubstr("sent again")));
  FakeWorker never;
  never.damaged_pieces = 100;
  Connect(never);
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("worker w0 (")));
}

TEST_F(RemoteWeightsTest, Load_DigestsKnown_NoneTravelWithThePieces) {
  for (RemoteWeightItem& item : items_) item.digests = DigestsOf(Content(item));
  ASSERT_OK(Load());
  EXPECT_TRUE(fake_.weight(7) == Content(items_[0]));
  // A file that is not what its digests say: nobody gets it.
  FakeWorker other;
  Connect(other);
  file_[2'000'000] ^= 1;
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged")));
}

TEST_F(RemoteWeightsTest, Load_AnotherWorkerHasThem_TheyComeFromThere) {
  FakeWorker peer;
  peer.stored[7] = Content(items_[0]);
  Connect(fake_, {&peer});
  std::vector<int64_t> done;
  LoadRemoteWeightsOptions options;
  options.progress = [&](const RemoteLoadProgress& progress) {
    done.push_back(progress.bytes_done);
  };
  ASSERT_OK_AND_ASSIGN(const RemoteWeights loaded, Load(options));
  EXPECT_TRUE(fake_.weight(7) == Content(items_[0]));
  EXPECT_TRUE(fake_.weight(3) == Content(items_[1]));
  EXPECT_EQ(loaded.bytes_from_peers, 2'501'000);
  EXPECT_EQ(loaded.bytes_streamed, 100);
  EXPECT_EQ(loaded.weights[0].source, RemoteWeightSource::kPeer);
  EXPECT_EQ(loaded.weights[1].source, RemoteWeightSource::kStream);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), 2'501'100);
}

TEST_F(RemoteWeightsTest, Load_PeerHasWrongBytes_NamedAndSentFromHere) {
  FakeWorker peer;
  peer.stored[7] = Content(items_[0]);
  peer.stored[7][1'500'000] ^= 1;
  Connect(fake_, {&peer});
  ASSERT_OK_AND_ASSIGN(const RemoteWeights loaded, Load());
  EXPECT_TRUE(fake_.weight(7) == Content(items_[0]));
  EXPECT_EQ(loaded.bytes_from_peers, 1 << 20);  // its first piece was right
  EXPECT_EQ(loaded.bytes_streamed, 2'501'100 - (1 << 20));
  EXPECT_EQ(loaded.weights[0].source, RemoteWeightSource::kStream);
  EXPECT_THAT(loaded.remarks, Contains(AllOf(HasSubstr("worker w1 ("), HasSubstr("damaged"))));
}

TEST_F(RemoteWeightsTest, Load_PeerEndsTooEarlyOrRefuses_NamedAndSentFromHere) {
  const std::vector<std::function<void(FakeWorker&)>> faults = {
      [](FakeWorker& peer) { peer.stored[7].resize(1 << 20); },
      [](FakeWorker& peer) {
        peer.fail["FindWeights"] = grpc::Status(grpc::StatusCode::INTERNAL, "not today");
      },
      [](FakeWorker& peer) {
        peer.fail["GiveWeights"] = grpc::Status(grpc::StatusCode::INTERNAL, "not today");
      },
      [](FakeWorker& peer) { peer.edit_found = [](auto& reply) { reply.add_weights(55); }; },
  };
  for (const auto& fault : faults) {
    FakeWorker fake;
    FakeWorker peer;
    peer.stored[7] = Content(items_[0]);
    fault(peer);
    Connect(fake, {&peer});
    ASSERT_OK_AND_ASSIGN(const RemoteWeights loaded, Load());
    EXPECT_TRUE(fake.weight(7) == Content(items_[0]));
    EXPECT_GT(loaded.bytes_streamed, 1'000'000);
    EXPECT_THAT(loaded.remarks, Contains(HasSubstr("worker w1 (")));
    link_.reset();
    workers_.clear();
  }
}

TEST_F(RemoteWeightsTest, Load_PeerDiesWhileItGives_NamesIt) {
  FakeWorker peer;
  peer.stored[7] = Content(items_[0]);
  peer.hang["GiveWeights"] = true;
  Connect(fake_, {&peer});
  absl::StatusOr<RemoteWeights> loaded = absl::UnknownError("");
  std::thread loader([&] { loaded = Load(); });
  EXPECT_TRUE(peer.AwaitCalls("GiveWeights", 1));
  peer.Die();
  loader.join();
  // The fleet has lost a member; whether the load notices that or is done before is open.
  if (loaded.ok()) {
    EXPECT_TRUE(fake_.weight(7) == Content(items_[0]));
    EXPECT_THAT(loaded->remarks, Contains(HasSubstr("worker w1 (")));
  } else {
    EXPECT_THAT(loaded, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("worker w1 (")));
  }
  EXPECT_OK(workers_[0]->lost());
}

}  // namespace
}  // namespace weft
