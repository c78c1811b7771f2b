#include "rpc_backend/client/remote_weights.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "rpc_backend/client/remote_buffer.h"
#include "rpc_backend/client/remote_worker.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/rpc_backend/client/fake_worker.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RemoteWeightsTest : public ::testing::Test {
 protected:
  RemoteWeightsTest() {
    file_.resize(5'000'000);
    for (size_t i = 0; i < file_.size(); ++i) file_[i] = static_cast<char>(i * 7 + i / 251);
    files_ = {{"/model.gguf", static_cast<int64_t>(file_.size()), std::string(32, 'd')}};
    items_ = {
        {.weight = 7,
         .device = 2,
         .reserve_bytes = 3'000'000,
         .slices = {{0, 100, 2'500'000}, {0, 4'000'000, 1000}},
         .name = "large"},
        {.weight = 3, .device = 0, .reserve_bytes = 128, .slices = {{0, 0, 100}}, .name = "small"},
        {.weight = 9, .device = 2, .reserve_bytes = 0, .slices = {}, .name = "empty"}};
  }

  void Connect() {
    auto worker = RemoteWorker::Connect(options_, nullptr);
    ASSERT_OK(worker);
    worker_ = *std::move(worker);
  }
  absl::StatusOr<RemoteWeights> Load(const LoadRemoteWeightsOptions& options = {}) {
    if (worker_ == nullptr) Connect();
    const SliceReader reader =
        [this](const RemoteWeightSlice& slice) -> absl::StatusOr<absl::Span<const uint8_t>> {
      largest_read_ = std::max(largest_read_, slice.bytes);
      if (!read_error_.ok()) return read_error_;
      return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(file_.data()), file_.size())
          .subspan(slice.offset, slice.bytes);
    };
    return LoadRemoteWeights(*worker_, files_, items_, reader, options);
  }

  FakeWorker fake_;
  RemoteWorkerOptions options_ = TestWorkerOptions(fake_.address());
  std::unique_ptr<RemoteWorker> worker_;
  std::string file_;
  std::vector<RemoteWeightFile> files_;
  std::vector<RemoteWeightItem> items_;
  int64_t largest_read_ = 0;
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
  EXPECT_EQ(&loaded.weights[1].buffer->type(), &worker_->devices()[0]->buffer_type());
  EXPECT_EQ(fake_.calls("SendWeights"), 0);
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
  fake_.fail["SendWeights"] = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "disk full");
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(HasSubstr("worker w0 ("), HasSubstr("disk full"))));
  EXPECT_TRUE(fake_.AwaitCalls("FreeBuffer", 3));
}

TEST_F(RemoteWeightsTest, Load_Cancelled_Ends) {
  for (const char* verb : {"LoadWeights", "SendWeights"}) {
    FakeWorker fake;
    fake.hang[verb] = true;
    ASSERT_OK_AND_ASSIGN(worker_,
                         RemoteWorker::Connect(TestWorkerOptions(fake.address()), nullptr));
    std::atomic<bool> cancel = false;
    LoadRemoteWeightsOptions options;
    options.cancel = &cancel;
    absl::Status status;
    std::thread loader([&] { status = Load(options).status(); });
    EXPECT_TRUE(fake.AwaitCalls(verb, 1));
    cancel = true;
    loader.join();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, HasSubstr(verb)));
    worker_.reset();
  }
}

TEST_F(RemoteWeightsTest, Load_NothingMoves_DeadlineExceeded) {
  for (const char* verb : {"LoadWeights", "SendWeights"}) {
    FakeWorker fake;
    fake.hang[verb] = true;
    RemoteWorkerOptions options = TestWorkerOptions(fake.address());
    options.stall_timeout = std::chrono::milliseconds(100);
    options.disk_timeout = std::chrono::milliseconds(100);
    ASSERT_OK_AND_ASSIGN(worker_, RemoteWorker::Connect(options, nullptr));
    EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                 AllOf(HasSubstr(verb), HasSubstr("nothing moved"))));
    worker_.reset();
  }
}

TEST_F(RemoteWeightsTest, Load_WorkerLost_ItsLoss) {
  fake_.hang["SendWeights"] = true;
  Connect();
  absl::Status status;
  std::thread loader([&] { status = Load().status(); });
  EXPECT_TRUE(fake_.AwaitCalls("SendWeights", 1));
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
    ASSERT_OK_AND_ASSIGN(worker_,
                         RemoteWorker::Connect(TestWorkerOptions(fake.address()), nullptr));
    EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInternal, HasSubstr("makes no sense")));
    worker_.reset();
  }
  fake_.edit_sent = [](proto::SendWeightsReply& reply) { reply.set_bytes(reply.bytes() - 1); };
  EXPECT_THAT(Load(), StatusIs(absl::StatusCode::kInternal, HasSubstr("makes no sense")));
}

}  // namespace
}  // namespace weft
