#include "common/transport/link_probe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "common/transport/loopback/loopback_network.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class LinkProbeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    transport_ = network_.NewTransport();
    ASSERT_OK_AND_ASSIGN(a_, transport_->NewPort({.own_number = 0, .limits = {}}));
    ASSERT_OK_AND_ASSIGN(b_, transport_->NewPort({.own_number = 1, .limits = {}}));
    ASSERT_OK(a_->Expect({.number = 1, .name = "b", .token = {}}));
    ASSERT_OK(b_->Connect({.number = 0, .name = "a", .token = {}}, a_->address(), Late()));
    options_.key = {.kind = 9, .step = 4};
    options_.max_bulk_messages = 8;
  }

  static Clock::TimePoint Late() { return SystemClock().Now() + std::chrono::seconds(60); }
  static Clock::TimePoint Soon() { return SystemClock().Now() + std::chrono::milliseconds(20); }

  LoopbackNetwork network_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<MessagePort> a_;
  std::unique_ptr<MessagePort> b_;
  LinkProbeOptions options_;
};

TEST_F(LinkProbeTest, MeasureLink_Answered_FiguresOfThatRun) {
  absl::Status answered;
  std::thread other([&] { answered = AnswerLinkProbe(*b_, 0, options_, Late()); });
  const Clock::TimePoint start = SystemClock().Now();
  const absl::StatusOr<LinkMeasurement> result = MeasureLink(*a_, 1, options_, Late());
  const double seconds = SecondsSince(SystemClock(), start);
  other.join();
  ASSERT_OK(answered);
  ASSERT_OK(result);
  // Half of the round trips took at least the median, and all of them are within the run.
  EXPECT_GT(result->round_trip_us, 0);
  EXPECT_LT(result->round_trip_us * 25, seconds * 1e6);
  EXPECT_DOUBLE_EQ(result->latency_us * 2, result->round_trip_us);
  EXPECT_GT(result->bytes_per_s * seconds, static_cast<double>(options_.bulk_bytes));
  const KindTraffic sent = a_->traffic()[0].kinds[9];
  EXPECT_EQ(sent.bytes_sent, a_->traffic()[0].Total().bytes_sent);
  EXPECT_GE(sent.messages_sent, options_.round_trips + 3);
}

TEST_F(LinkProbeTest, MeasureStream_Answered_SendsEachByteOnce) {
  options_.bulk_bytes = 1000;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}, size_t{4000}, size_t{123456}}) {
    absl::Status answered;
    std::thread other([&] { answered = AnswerLinkProbe(*b_, 0, options_, Late()); });
    const int64_t before = a_->traffic()[0].kinds[9].bytes_sent;
    const std::vector<uint8_t> content(size, 1);
    const absl::StatusOr<double> rate = MeasureStream(*a_, 1, options_, content, 4, Late());
    other.join();
    ASSERT_OK(answered);
    ASSERT_OK(rate);
    EXPECT_EQ(*rate > 0, size > 0);
    // A word in front of each message, two bytes for every two of them, one at the end.
    const int64_t messages = (static_cast<int64_t>(size) + 999) / 1000;
    EXPECT_EQ(a_->traffic()[0].kinds[9].bytes_sent - before,
              static_cast<int64_t>(size) + messages + (messages + 1) / 2 * 2 + 1);
  }
  for (const int window : {0, 1, 3, 256}) {
    EXPECT_THAT(MeasureStream(*a_, 1, options_, {}, window, Late()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("out of range")));
  }
}

TEST_F(LinkProbeTest, MeasureLink_NobodyAnswers_DeadlineExceeded) {
  EXPECT_THAT(MeasureLink(*a_, 1, options_, Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("peer 1 (b)")));
  EXPECT_THAT(AnswerLinkProbe(*a_, 1, options_, Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("peer 1 (b)")));
}

TEST_F(LinkProbeTest, AnswerLinkProbe_Nonsense_InvalidArgument) {
  for (const Payload& nonsense :
       {Payload(), Payload(1, 0), Payload(1, 3), Payload(3, 3), Payload(100, 200)}) {
    ASSERT_OK(SendBytes(*a_, 1, options_.key, nonsense));
    EXPECT_THAT(AnswerLinkProbe(*b_, 0, options_, Late()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("peer 0")));
  }
}

TEST_F(LinkProbeTest, MeasureLink_WrongAnswer_InvalidArgument) {
  MessageHeader answer = options_.key;
  answer.id = 1;
  ASSERT_OK(SendBytes(*b_, 0, answer, Payload(3, 1)));
  EXPECT_THAT(MeasureLink(*a_, 1, options_, Late()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("peer 1")));
}

TEST_F(LinkProbeTest, MeasureLink_BadOptions_Refused) {
  options_.max_bulk_messages = 256;
  EXPECT_THAT(MeasureLink(*a_, 1, options_, Late()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("out of range")));
  options_.key.kind = kMessageKinds;
  EXPECT_THAT(AnswerLinkProbe(*a_, 1, options_, Late()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("out of range")));
}

TEST_F(LinkProbeTest, AnswerLinkProbe_PeerLost_Unavailable) {
  network_.Disconnect(a_->address(), b_->address());
  EXPECT_THAT(AnswerLinkProbe(*a_, 1, options_, Late()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1 (b)")));
}

}  // namespace
}  // namespace weft
