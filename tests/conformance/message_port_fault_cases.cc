// Deadlines, bounds, losses and aborts.
#include "absl/strings/str_cat.h"
#include "tests/conformance/message_port_suite.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST_P(MessagePortSuite, Receive_Nothing_DeadlineExceeded) {
  const auto ports = NewPorts(2);
  ASSERT_OK(SendBytes(*ports[0], 1, Header(2, 5, 0), PatternPayload(0, 10)));
  const Clock::TimePoint start = SystemClock().Now();
  EXPECT_THAT(ports[1]->Receive({.peer = 0, .step = 4}, Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("step 4")));
  EXPECT_GE(SecondsSince(SystemClock(), start), 0.05);
  EXPECT_THAT(ports[1]->Receive({.step = 4}, start),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("step 4")));
  EXPECT_OK(ports[1]->failure());
  EXPECT_OK(ports[1]->Receive({.step = 5}, Late()));
}

TEST_P(MessagePortSuite, Wake_StopSet_ReceiveIsCancelled) {
  const auto ports = NewPorts(2);
  std::atomic<bool> stop = false;
  absl::Status first;
  absl::Status second;
  {
    const ScopedThread one([&] { first = ports[1]->Receive({}, Late(), &stop).status(); });
    const ScopedThread two([&] { second = ports[1]->Receive({}, Late(), &stop).status(); });
    ports[1]->Wake();
    stop = true;
    ports[1]->Wake();
  }
  EXPECT_THAT(first, StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  EXPECT_THAT(second, StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  EXPECT_OK(ports[1]->failure());
}

TEST_P(MessagePortSuite, Abort_WhileWaiting_EndsEveryCall) {
  PortLimits limits;
  limits.outgoing_bytes_per_peer = 100000;
  limits.inbox_bytes = 1;
  limits.send_timeout = std::chrono::seconds(60);
  const auto ports = NewPorts(2, limits);
  absl::Status received;
  absl::Status sent;
  {
    const ScopedThread reader([&] { received = ports[0]->Receive({}, Late()).status(); });
    const ScopedThread sender([&] {
      while (sent.ok()) {
        sent = SendBytes(*ports[0], 1, Header(0, 0, 0), PatternPayload(0, 60000));
      }
    });
    while (ports[0]->traffic()[0].Total().messages_sent == 0) std::this_thread::yield();
    ports[0]->Abort(absl::AbortedError("epoch 4 begins"));
    ports[0]->Abort(absl::InternalError("later"));
  }
  EXPECT_THAT(received, StatusIs(absl::StatusCode::kAborted, HasSubstr("epoch 4 begins")));
  EXPECT_THAT(sent, StatusIs(absl::StatusCode::kAborted, HasSubstr("epoch 4 begins")));
  EXPECT_THAT(ports[0]->failure(), StatusIs(absl::StatusCode::kAborted, HasSubstr("epoch 4")));
  EXPECT_THAT(ports[0]->AwaitPeers(Late()),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("epoch 4 begins")));
  EXPECT_THAT(ports[0]->Connect(Peer(9), ports[1]->address(), Late()),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("epoch 4 begins")));
}

TEST_P(MessagePortSuite, Destroy_OtherSide_UnavailableNamesPeer) {
  auto ports = NewPorts(3);
  ASSERT_OK(SendBytes(*ports[2], 0, Header(0, 1, 0), PatternPayload(0, 10)));
  ASSERT_OK(SendBytes(*ports[2], 0, Header(0, 2, 0), PatternPayload(0, 10)));
  EXPECT_OK(ports[0]->Receive({.peer = 2, .step = 2}, Late()));
  ports[2].reset();
  EXPECT_THAT(ports[0]->Receive({.peer = 2, .step = 3}, Late()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 2 (w2)")));
  // What had arrived stays; the others go on.
  EXPECT_OK(ports[0]->Receive({.peer = 2, .step = 1}, Late()));
  EXPECT_THAT(ports[0]->failure(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 2 (w2)")));
  EXPECT_THAT(SendBytes(*ports[0], 2, Header(0, 0, 0), PatternPayload(0, 10)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 2 (w2)")));
  ASSERT_OK(SendBytes(*ports[1], 0, Header(0, 3, 0), PatternPayload(3, 100000)));
  const ScopedDriver driver(*ports[1]);
  EXPECT_OK(ports[0]->Receive({.step = 3}, Late()));
  for (const PeerTraffic& traffic : ports[0]->traffic()) {
    EXPECT_EQ(traffic.lost, traffic.peer == 2);
  }
}

TEST_P(MessagePortSuite, Destroy_OnlyPeer_ReceiveFromAnyEnds) {
  auto ports = NewPorts(2);
  absl::Status status;
  {
    const ScopedThread reader([&] { status = ports[0]->Receive({}, Late()).status(); });
    ports[1].reset();
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1 (w1)")));
}

TEST_P(MessagePortSuite, Destroy_WithLargeMessagesUnread_Returns) {
  PortLimits limits;
  limits.inbox_bytes = 1;
  auto ports = NewPorts(3, limits);
  for (int32_t i = 0; i < 5; ++i) {
    ASSERT_OK(SendBytes(*ports[0], 1, Header(0, 0, i), PatternPayload(i, 1000000)));
    ASSERT_OK(SendBytes(*ports[1], 0, Header(0, 0, i), PatternPayload(i, 1000000)));
    ASSERT_OK(SendBytes(*ports[2], 0, Header(0, 0, i), PatternPayload(i, 1000000)));
  }
  {
    const ScopedDriver driver(*ports[1]);
    EXPECT_OK(ports[0]->Receive({.peer = 1, .id = 3}, Late()));
  }
  ports[0].reset();
  ports[1].reset();
  ports[2].reset();
}

TEST_P(MessagePortSuite, Send_ReceiverDoesNotRead_BoundedThenDeadline) {
  PortLimits limits;
  limits.outgoing_bytes_per_peer = 500000;
  limits.inbox_bytes = 1;
  limits.send_timeout = std::chrono::milliseconds(50);
  const auto ports = NewPorts(2, limits);
  int32_t sent = 0;
  absl::Status status;
  while (status.ok() && sent < 1000) {
    status = SendBytes(*ports[0], 1, Header(0, 0, sent), PatternPayload(sent, 100000));
    if (status.ok()) ++sent;
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("peer 1 (w1)")));
  // What left a socket's buffer may be beyond the bound.
  EXPECT_THAT(sent, AnyOf(::testing::Eq(5), ::testing::AllOf(::testing::Ge(5), ::testing::Le(50))));
  EXPECT_OK(ports[0]->failure());

  const ScopedDriver driver(*ports[0]);
  for (int32_t i = sent; i-- > 0;) {
    const auto message = ports[1]->Receive({.id = i}, Late());
    ASSERT_OK(message);
    EXPECT_TRUE(message->payload == PatternPayload(i, 100000));
  }
  EXPECT_OK(SendBytes(*ports[0], 1, Header(0, 0, sent), PatternPayload(0, 100000)));
}

TEST_P(MessagePortSuite, Send_LargerThanLimits_StillArrives) {
  PortLimits limits;
  limits.outgoing_bytes_per_peer = 1000;
  limits.inbox_bytes = 1000;
  const auto ports = NewPorts(2, limits);
  const Payload sent = PatternPayload(1, 3000000);
  ASSERT_OK(SendBytes(*ports[0], 1, Header(0, 0, 0), sent));
  const ScopedDriver driver(*ports[0]);
  const auto message = ports[1]->Receive({}, Late());
  ASSERT_OK(message);
  EXPECT_TRUE(message->payload == sent);
}

TEST_P(MessagePortSuite, Store_SenderFarAhead_ReceiverFailsNamingIt) {
  PortLimits limits;
  limits.unread_messages_per_peer = 50;
  const auto receiver = NewPort(Options(0, limits));
  const auto sender = NewPort(Options(1));
  ASSERT_OK(Connect(*sender, 1, *receiver, 0));
  const ScopedThread flood([&] {
    for (int32_t i = 0; i < 51; ++i) {
      (void)SendBytes(*sender, 0, Header(0, 0, i), PatternPayload(0, 10));
    }
  });
  EXPECT_THAT(receiver->Receive({.kinds = KindBit(1)}, Late()),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("peer 1 (w1)")));
  EXPECT_THAT(receiver->failure(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("peer 1 (w1)")));
}

TEST_P(MessagePortSuite, Store_OtherEpoch_DroppedAndCounted) {
  PortOptions old = Options(1);
  old.epoch = kTestEpoch - 1;
  const auto receiver = NewPort(Options(0));
  const auto sender = NewPort(old);
  ASSERT_OK(Connect(*sender, 1, *receiver, 0));
  MessageHeader header = Header(0, 0, 0);
  header.epoch = old.epoch;
  ASSERT_OK(SendBytes(*sender, 0, header, PatternPayload(0, 10)));
  ASSERT_OK(SendBytes(*sender, 0, header, PatternPayload(0, 50000)));
  const ScopedDriver driver(*sender);
  const Clock::TimePoint late = Late();
  while (receiver->traffic()[0].messages_dropped < 2 && SystemClock().Now() < late) {
    EXPECT_THAT(receiver->Receive({}, Soon()),
                StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("any id")));
  }
  EXPECT_EQ(receiver->traffic()[0].messages_dropped, 2);
  EXPECT_OK(receiver->failure());
}

}  // namespace
}  // namespace weft
