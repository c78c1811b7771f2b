#include "rpc_backend/protocol/port_edges.h"

#include <memory>
#include <thread>
#include <vector>

#include "common/transport/loopback/loopback_network.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint32_t kEpoch = 5;

class PortEdgesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int32_t number = 0; number < 2; ++number) {
      PortOptions options;
      options.epoch = kEpoch;
      options.own_number = number;
      options.limits.unread_messages_per_peer = 20;
      transports_.push_back(network_.NewTransport());
      ASSERT_OK_AND_ASSIGN(std::unique_ptr<MessagePort> port, transports_.back()->NewPort(options));
      ports_.push_back(std::move(port));
      edges_.push_back(std::make_unique<PortEdges>(*ports_.back(), kEpoch));
    }
    ASSERT_OK(ports_[1]->Expect({.number = 0, .name = "w0", .token = {}}));
    ASSERT_OK(
        ports_[0]->Connect({.number = 1, .name = "w1", .token = {}}, ports_[1]->address(), Late()));
  }
  static Clock::TimePoint Late() { return SystemClock().Now() + std::chrono::seconds(60); }
  static Clock::TimePoint Soon() { return SystemClock().Now() + std::chrono::milliseconds(20); }

  absl::Status Send(int64_t step, int32_t edge, uint8_t value) {
    return edges_[0]->Send(step, edge, 1, std::vector<uint8_t>(10, value));
  }
  absl::Status Receive(int64_t step, int32_t edge, std::vector<uint8_t>& bytes,
                       Clock::TimePoint deadline) {
    return edges_[1]->Receive(step, edge, 0, absl::MakeSpan(bytes), deadline, stop_);
  }

  LoopbackNetwork network_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<MessagePort>> ports_;
  std::vector<std::unique_ptr<PortEdges>> edges_;
  std::atomic<bool> stop_ = false;
};

TEST_F(PortEdgesTest, Receive_AnyOrder_FoundByStepAndEdge) {
  ASSERT_OK(Send(1, 4, 14));
  ASSERT_OK(Send(2, 3, 23));
  ASSERT_OK(Send(1, 3, 13));
  std::vector<uint8_t> bytes(10);
  for (const auto& [step, edge] :
       std::vector<std::pair<int64_t, int32_t>>{{1, 3}, {2, 3}, {1, 4}}) {
    ASSERT_OK(Receive(step, edge, bytes, Late()));
    EXPECT_EQ(bytes, std::vector<uint8_t>(10, static_cast<uint8_t>(step * 10 + edge)));
  }
}

TEST_F(PortEdgesTest, Receive_WrongSize_DataLoss) {
  ASSERT_OK(Send(1, 2, 0));
  std::vector<uint8_t> bytes(11);
  EXPECT_THAT(Receive(1, 2, bytes, Late()),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("hand-off 2 of step 1"), HasSubstr("10 bytes"))));
}

TEST_F(PortEdgesTest, Receive_Nothing_DeadlineOrStop) {
  std::vector<uint8_t> bytes(10);
  EXPECT_THAT(Receive(1, 2, bytes, Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("hand-off 2 of step 1")));
  absl::Status status;
  std::thread waiter([&] { status = Receive(1, 2, bytes, Late()); });
  stop_ = true;
  edges_[1]->Wake();
  waiter.join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, HasSubstr("hand-off 2 of step 1")));
}

TEST_F(PortEdgesTest, Receive_PeerIsGone_Unavailable) {
  ports_[0].reset();
  std::vector<uint8_t> bytes(10);
  EXPECT_THAT(Receive(1, 2, bytes, Late()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 0 (w0)")));
}

TEST_F(PortEdgesTest, Send_UnknownPeer_Refused) {
  EXPECT_THAT(edges_[0]->Send(1, 2, 9, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("hand-off 2 of step 1")));
}

// Steps that were cancelled here: nobody reads what still comes for them.
TEST_F(PortEdgesTest, Retire_UnreadAndLate_DroppedLaterOnesStay) {
  std::vector<uint8_t> bytes(10);
  ASSERT_OK(Send(1, 0, 1));
  ASSERT_OK(Receive(1, 0, bytes, Late()));
  for (int64_t step = 2; step <= 200; ++step) {
    // The message of the step before comes after that was retired.
    ASSERT_OK(Send(step - 1, 7, 0));
    ASSERT_OK(Send(step, 0, 0));
    edges_[1]->Retire(step);
  }
  EXPECT_OK(ports_[1]->failure());
  ASSERT_OK(Send(201, 0, 3));
  edges_[1]->Retire(200);
  ASSERT_OK(Receive(201, 0, bytes, Late()));
  EXPECT_EQ(bytes[0], 3);
  EXPECT_THAT(Receive(200, 0, bytes, Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("step 200")));
}

}  // namespace
}  // namespace weft
