// A mailbox group: who gets what, who waits for how long, and what becomes of messages nobody
// takes.
#include "common/program/loopback_edges.h"

#include <chrono>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

Clock::TimePoint Now() { return SystemClock().Now(); }
Clock::TimePoint Soon() { return Now() + std::chrono::seconds(60); }

class LoopbackTest : public ::testing::Test {
 protected:
  absl::Status Send(int32_t from, int32_t to, int64_t step, int32_t edge, const Bytes& bytes) {
    return edges_.port(from).Send(step, edge, to, bytes);
  }
  absl::Status Receive(int32_t at, int32_t from, int64_t step, int32_t edge, Bytes& bytes,
                       Clock::TimePoint deadline) {
    return edges_.port(at).Receive(step, edge, from, absl::MakeSpan(bytes), deadline, stop_);
  }
  void ExpectReceived(int32_t at, int32_t from, int64_t step, int32_t edge, const Bytes& want) {
    Bytes bytes(want.size());
    ASSERT_OK(Receive(at, from, step, edge, bytes, Soon()));
    EXPECT_EQ(bytes, want);
  }

  std::atomic<bool> stop_ = false;
  LoopbackEdges edges_{{.processes = 3, .mailbox_messages = 4, .mailbox_bytes = 10}};
};

TEST_F(LoopbackTest, Messages_AreFoundByStepEdgeAndSender) {
  ASSERT_OK(Send(0, 2, 1, 7, {1}));
  ASSERT_OK(Send(1, 2, 1, 7, {2, 2}));
  ASSERT_OK(Send(0, 2, 2, 7, {3}));
  ASSERT_OK(Send(0, 2, 1, 8, {}));
  ExpectReceived(2, 0, 2, 7, {3});
  ExpectReceived(2, 1, 1, 7, {2, 2});
  ExpectReceived(2, 0, 1, 8, {});
  ExpectReceived(2, 0, 1, 7, {1});
  EXPECT_EQ(edges_.waiting(2), 0);
  EXPECT_EQ(edges_.traffic(0, 2).messages, 3);
  EXPECT_EQ(edges_.traffic(0, 2).bytes, 2);
  EXPECT_EQ(edges_.traffic(1, 2).bytes, 2);
  EXPECT_EQ(edges_.traffic(2, 0).messages, 0);
}

TEST_F(LoopbackTest, Receive_WaitsForTheSender) {
  std::thread sender([this] { EXPECT_OK(Send(0, 1, 1, 0, {9})); });
  ExpectReceived(1, 0, 1, 0, {9});
  sender.join();
}

TEST_F(LoopbackTest, WrongSize_IsDataLoss) {
  ASSERT_OK(Send(0, 1, 1, 0, {1, 2}));
  Bytes bytes(3);
  EXPECT_THAT(Receive(1, 0, 1, 0, bytes, Soon()),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("has 2 bytes, want 3")));
}

TEST_F(LoopbackTest, NothingByTheDeadline_IsSaid) {
  Bytes bytes(1);
  EXPECT_THAT(Receive(1, 0, 5, 3, bytes, Now()),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("step 5, edge 3 from process 0 did not come")));
}

TEST_F(LoopbackTest, UnknownPeers_AreRefused) {
  Bytes bytes(1);
  for (const int32_t peer : {-1, 3}) {
    EXPECT_THAT(Send(0, peer, 1, 0, {1}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("")));
    EXPECT_THAT(Receive(0, peer, 1, 0, bytes, Now()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no process")));
  }
}

TEST_F(LoopbackTest, StopAndWake_EndsTheWait) {
  std::thread other([this] {
    stop_ = true;
    edges_.port(1).Wake();
  });
  Bytes bytes(1);
  EXPECT_THAT(Receive(1, 0, 1, 0, bytes, Soon()),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
  other.join();
}

TEST_F(LoopbackTest, FullMailbox_RefusesAndRecovers) {
  ASSERT_OK(Send(0, 1, 1, 0, Bytes(6)));
  EXPECT_THAT(Send(2, 1, 1, 0, Bytes(5)),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("process 1 is full")));
  ASSERT_OK(Send(0, 2, 1, 0, Bytes(5)));  // another one's
  for (int32_t edge = 1; edge < 4; ++edge) ASSERT_OK(Send(0, 1, 1, edge, {}));
  EXPECT_THAT(Send(0, 1, 1, 4, {}), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
  ExpectReceived(1, 0, 1, 0, Bytes(6));
  ASSERT_OK(Send(2, 1, 1, 0, Bytes(5)));
}

TEST_F(LoopbackTest, SentTwice_IsRefused) {
  ASSERT_OK(Send(0, 1, 1, 0, {1}));
  EXPECT_THAT(Send(0, 1, 1, 0, {2}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("was sent before")));
}

TEST_F(LoopbackTest, RetiredSteps_AreDroppedBeforeAndAfter) {
  ASSERT_OK(Send(0, 1, 1, 0, {1}));
  ASSERT_OK(Send(0, 1, 3, 0, {3}));
  edges_.port(1).Retire(2);
  edges_.port(1).Retire(1);
  EXPECT_EQ(edges_.waiting(1), 1);
  ASSERT_OK(Send(0, 1, 2, 0, Bytes(100)));
  EXPECT_EQ(edges_.waiting(1), 1);
  EXPECT_EQ(edges_.traffic(0, 1).dropped, 2);
  ExpectReceived(1, 0, 3, 0, {3});
}

TEST_F(LoopbackTest, Abort_FailsWhoWaitsAndWhoComesLater) {
  std::thread other([this] { edges_.Abort(absl::UnavailableError("worker b is lost")); });
  Bytes bytes(1);
  EXPECT_THAT(Receive(1, 0, 1, 0, bytes, Soon()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("worker b is lost")));
  other.join();
  EXPECT_THAT(Send(0, 1, 1, 0, {1}), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("")));
}

TEST_F(LoopbackTest, AbortOfOneProcess_LeavesTheOthers) {
  ASSERT_OK(Send(2, 1, 1, 0, {7}));
  edges_.AbortProcess(2, absl::UnavailableError("worker c is lost"));
  ASSERT_OK(Send(0, 1, 1, 0, {1}));
  ExpectReceived(1, 0, 1, 0, {1});
  ExpectReceived(1, 2, 1, 0, {7});  // had arrived
  Bytes bytes(1);
  EXPECT_THAT(Receive(1, 2, 1, 1, bytes, Soon()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("")));
  EXPECT_THAT(Send(0, 2, 1, 0, {1}), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("")));
  EXPECT_THAT(Send(2, 0, 1, 0, {1}), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("")));
  EXPECT_THAT(Receive(2, 0, 1, 0, bytes, Soon()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("")));
}

}  // namespace
}  // namespace weft
