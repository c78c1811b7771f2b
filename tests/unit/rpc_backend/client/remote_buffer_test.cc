#include "rpc_backend/client/remote_buffer.h"

#include <numeric>
#include <string>
#include <vector>

#include "rpc_backend/client/remote_device.h"
#include "rpc_backend/client/remote_worker.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/rpc_backend/client/fake_worker.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RemoteBufferTest : public ::testing::Test {
 protected:
  BufferType& Type() {
    if (worker_ == nullptr) {
      auto worker = RemoteWorker::Connect(options_, nullptr);
      EXPECT_OK(worker);
      worker_ = *std::move(worker);
    }
    return worker_->devices()[2]->buffer_type();
  }

  FakeWorker fake_;
  RemoteWorkerOptions options_ = TestWorkerOptions(fake_.address());
  std::unique_ptr<RemoteWorker> worker_;
};

TEST_F(RemoteBufferTest, SetGetFill_Ranges_AsLocalBuffers) {
  ASSERT_OK_AND_ASSIGN(const auto buffer, Type().Allocate(10, BufferUsage::kWeights));
  EXPECT_EQ(&buffer->type(), &Type());
  EXPECT_EQ(buffer->size(), 10);
  EXPECT_EQ(buffer->usage(), BufferUsage::kWeights);
  EXPECT_EQ(buffer->host_data(), nullptr);
  ASSERT_OK(buffer->Fill(0, '.', 10));
  ASSERT_OK(buffer->Set(3, "abc", 3));
  EXPECT_THAT(fake_.buffers(), ElementsAre("...abc...."));
  std::string read(4, '\0');
  ASSERT_OK(buffer->Get(2, read.data(), 4));
  EXPECT_EQ(read, ".abc");
  ASSERT_OK(buffer->Set(10, "", 0));
  for (const auto& [offset, bytes] :
       std::vector<std::pair<int64_t, int64_t>>{{-1, 2}, {9, 2}, {0, -1}, {11, 0}}) {
    EXPECT_THAT(buffer->Fill(offset, 0, bytes),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("w0.cpu0")));
  }
}

TEST_F(RemoteBufferTest, SetGet_LargerThanOneMessage_InPieces) {
  std::vector<uint8_t> bytes(9'000'001);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  const auto size = static_cast<int64_t>(bytes.size());
  ASSERT_OK_AND_ASSIGN(const auto buffer, Type().Allocate(size, BufferUsage::kAny));
  ASSERT_OK(buffer->Set(0, bytes.data(), size));
  std::vector<uint8_t> read(bytes.size());
  ASSERT_OK(buffer->Get(0, read.data(), size));
  EXPECT_TRUE(read == bytes);
  EXPECT_EQ(fake_.calls("WriteBuffer"), 3);
  EXPECT_EQ(fake_.calls("ReadBuffer"), 3);
}

// A reply that could unfold to any size, which gRPC would not bound.
TEST_F(RemoteBufferTest, CompressedReply_IsRefused) {
  ASSERT_OK_AND_ASSIGN(const auto buffer, Type().Allocate(4096, BufferUsage::kAny));
  ASSERT_OK(buffer->Fill(0, 0, 4096));
  std::vector<uint8_t> read(4096);
  ASSERT_OK(buffer->Get(0, read.data(), 4096));
  fake_.compress = true;
  EXPECT_THAT(buffer->Get(0, read.data(), 4096), StatusIs(absl::StatusCode::kInternal));
}

TEST_F(RemoteBufferTest, Destroy_FreedBeforeNextAllocation) {
  { ASSERT_OK_AND_ASSIGN(const auto buffer, Type().Allocate(10, BufferUsage::kAny)); }
  ASSERT_OK_AND_ASSIGN(const auto next, Type().Allocate(5, BufferUsage::kAny));
  EXPECT_THAT(fake_.buffers(), ElementsAre(std::string(5, '\0')));
}

TEST_F(RemoteBufferTest, Destroy_LostWorker_NotFreedAndDoesNotWait) {
  ASSERT_OK_AND_ASSIGN(auto buffer, Type().Allocate(10, BufferUsage::kAny));
  worker_->Close();
  buffer.reset();
  EXPECT_EQ(fake_.calls("FreeBuffer"), 0);
  EXPECT_THAT(Type().Allocate(10, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("closed")));
}

TEST_F(RemoteBufferTest, Destroy_WorkerHangs_DoesNotWait) {
  fake_.hang["FreeBuffer"] = true;
  ASSERT_OK_AND_ASSIGN(auto buffer, Type().Allocate(10, BufferUsage::kAny));
  buffer.reset();
  EXPECT_TRUE(fake_.AwaitCalls("FreeBuffer", 1));
  worker_->Close();
}

TEST_F(RemoteBufferTest, Allocate_Refused_StatusNamesWorker) {
  fake_.fail["AllocateBuffer"] = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "no memory");
  EXPECT_THAT(Type().Allocate(10, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("worker w0 ("), HasSubstr("no memory"))));
  EXPECT_THAT(Type().Allocate(-1, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1 bytes")));
  EXPECT_THAT(Type().Allocate(Type().max_bytes() + 1, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("w0.cpu0")));
  EXPECT_EQ(fake_.calls("AllocateBuffer"), 1);
}

TEST_F(RemoteBufferTest, Replies_MakeNoSense_Refused) {
  fake_.edit_allocate = [](proto::AllocateBufferReply& reply) { reply.set_buffer(-3); };
  EXPECT_THAT(Type().Allocate(10, BufferUsage::kAny),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("makes no sense")));
  fake_.edit_allocate = nullptr;
  ASSERT_OK_AND_ASSIGN(const auto buffer, Type().Allocate(10, BufferUsage::kAny));
  std::string read(10, '\0');
  for (const size_t bytes : {size_t{0}, size_t{9}, size_t{11}, size_t{20'000'000}}) {
    fake_.edit_read = [bytes](proto::ReadBufferReply& reply) {
      reply.set_data(std::string(bytes, 'x'));
    };
    EXPECT_THAT(buffer->Get(0, read.data(), 10),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("makes no sense")));
  }
  EXPECT_EQ(read, std::string(10, '\0'));
}

}  // namespace
}  // namespace weft
