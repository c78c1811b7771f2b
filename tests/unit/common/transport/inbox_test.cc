#include "common/transport/inbox.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kEpoch = 7;

PortOptions Options() {
  PortOptions options;
  options.epoch = kEpoch;
  options.own_number = 0;
  options.limits.inbox_bytes = 100000;
  options.limits.unread_messages_per_peer = 4;
  options.limits.unread_eager_bytes_per_peer = 20000;
  options.limits.max_message_bytes = 1000000;
  return options;
}

Message MakeMessage(int32_t peer, const MessageHeader& header, int64_t bytes = 1) {
  Message message{.peer = peer, .header = header, .payload = {}};
  message.payload.resize(bytes);
  return message;
}

// Peers 1 and 2, connected.
class InboxTest : public ::testing::Test {
 protected:
  InboxTest() : inbox_(Options()) {
    for (const int32_t number : {1, 2}) {
      EXPECT_OK(inbox_.AddPeer({.number = number, .name = "w", .token = {}}));
      inbox_.ConnectPeer(number, "test");
    }
  }

  // The id of the message that a reader gets now; -1 if it would wait.
  int32_t Read(const MessageFilter& filter) {
    const Inbox::Waiter waiter(filter);
    const std::optional<absl::StatusOr<Message>> message = inbox_.Poll(waiter);
    if (!message.has_value()) return -1;
    EXPECT_OK(*message);
    return message->ok() ? (*message)->header.id : -2;
  }

  Inbox inbox_;
};

TEST_F(InboxTest, Poll_SeveralMatch_LowestKeyFirstThenFirstArrived) {
  inbox_.Store(MakeMessage(2, {.epoch = kEpoch, .kind = 3, .step = 9, .id = 5}));
  inbox_.Store(MakeMessage(1, {.epoch = kEpoch, .kind = 1, .step = 9, .id = 4}));
  inbox_.Store(MakeMessage(2, {.epoch = kEpoch, .kind = 3, .step = 8, .id = 6}));
  inbox_.Store(MakeMessage(1, {.epoch = kEpoch, .kind = 1, .step = 8, .id = 7}));
  EXPECT_EQ(Read({.peer = 2}), 6);
  EXPECT_EQ(Read({.kinds = KindBit(3)}), 5);
  EXPECT_EQ(Read({.step = 9}), 4);
  EXPECT_EQ(Read({.id = 6}), -1);
  EXPECT_EQ(Read({}), 7);
  EXPECT_EQ(Read({}), -1);
  EXPECT_EQ(inbox_.stored_bytes(), 0);
}

TEST_F(InboxTest, Store_OtherEpoch_DroppedAndCounted) {
  inbox_.Store(MakeMessage(1, {.epoch = kEpoch - 1}));
  inbox_.Store(MakeMessage(1, {.epoch = kEpoch + 1}));
  EXPECT_FALSE(inbox_.Offer(1, {.epoch = 0}, 50000).has_value());
  EXPECT_EQ(Read({}), -1);
  EXPECT_EQ(inbox_.traffic()[0].messages_dropped, 3);
  EXPECT_EQ(inbox_.traffic()[1].messages_dropped, 0);
  EXPECT_OK(inbox_.failure());
}

TEST_F(InboxTest, Store_HeaderOutOfRange_FailsNamingPeer) {
  for (const MessageHeader& header :
       {MessageHeader{.epoch = kEpoch, .kind = kMessageKinds},
        MessageHeader{.epoch = kEpoch, .step = -1}, MessageHeader{.epoch = kEpoch, .id = -1}}) {
    Inbox inbox(Options());
    ASSERT_OK(inbox.AddPeer({.number = 3, .name = "w3", .token = {}}));
    inbox.Store(MakeMessage(3, header));
    EXPECT_THAT(inbox.failure(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("peer 3 (w3)")));
  }
}

TEST_F(InboxTest, Store_TooManyUnread_FailsNamingPeer) {
  for (int32_t i = 0; i < 4; ++i) inbox_.Store(MakeMessage(2, {.epoch = kEpoch, .id = i}));
  EXPECT_EQ(Read({}), 0);
  inbox_.Store(MakeMessage(2, {.epoch = kEpoch, .id = 4}));
  inbox_.Store(MakeMessage(1, {.epoch = kEpoch, .id = 5}));
  EXPECT_OK(inbox_.failure());
  inbox_.Store(MakeMessage(2, {.epoch = kEpoch, .id = 6}));
  EXPECT_THAT(inbox_.failure(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("peer 2 (w)")));
}

TEST_F(InboxTest, Store_TooManyUnreadBytes_Fails) {
  inbox_.Store(MakeMessage(2, {.epoch = kEpoch}, 15000));
  EXPECT_EQ(Read({}), 0);
  inbox_.Store(MakeMessage(2, {.epoch = kEpoch}, 15000));
  EXPECT_OK(inbox_.failure());
  inbox_.Store(MakeMessage(2, {.epoch = kEpoch}, 5001));
  EXPECT_THAT(inbox_.failure(), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("ahead")));
}

TEST_F(InboxTest, Offer_OverMessageLimit_Fails) {
  EXPECT_FALSE(inbox_.Offer(1, {.epoch = kEpoch}, 1000001).has_value());
  EXPECT_THAT(inbox_.failure(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1000001")));
}

TEST_F(InboxTest, NextWanted_Room_TakesUntilFull) {
  const auto first = inbox_.Offer(1, {.epoch = kEpoch, .id = 1}, 60000);
  const auto second = inbox_.Offer(2, {.epoch = kEpoch, .id = 2}, 60000);
  ASSERT_TRUE(first.has_value() && second.has_value());
  std::optional<Inbox::Wanted> wanted = inbox_.NextWanted();
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->ticket, *first);
  EXPECT_EQ(wanted->bytes, 60000);
  EXPECT_FALSE(inbox_.NextWanted().has_value());
  EXPECT_EQ(Read({}), -1);
  inbox_.Fetched(*first, Payload(60000));
  EXPECT_EQ(Read({}), 1);
  wanted = inbox_.NextWanted();
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->ticket, *second);
}

TEST_F(InboxTest, NextWanted_Full_TakesOneForEachThatWaits) {
  ASSERT_TRUE(inbox_.Offer(1, {.epoch = kEpoch, .id = 1}, 90000).has_value());
  ASSERT_TRUE(inbox_.NextWanted().has_value());
  ASSERT_TRUE(inbox_.Offer(1, {.epoch = kEpoch, .id = 2}, 90000).has_value());
  const auto third = inbox_.Offer(2, {.epoch = kEpoch, .id = 3}, 90000);
  EXPECT_FALSE(inbox_.NextWanted().has_value());

  Inbox::Waiter waiter({.id = 3});
  inbox_.Enter(waiter);
  EXPECT_EQ(inbox_.NextWanted()->ticket, *third);
  EXPECT_FALSE(inbox_.NextWanted().has_value());
  inbox_.Leave(waiter);

  // Somebody who takes anything already has two messages on their way.
  Inbox::Waiter any({});
  inbox_.Enter(any);
  EXPECT_FALSE(inbox_.NextWanted().has_value());
  inbox_.Leave(any);
  EXPECT_EQ(inbox_.stored_bytes(), 180000);
  inbox_.FetchFailed(*third, absl::UnavailableError("reset"));
  EXPECT_EQ(inbox_.stored_bytes(), 90000);
  EXPECT_THAT(inbox_.failure(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 2 (w)")));
}

TEST_F(InboxTest, LosePeer_EndsWaitsThatNeedAllPeers) {
  const MessageFilter one{.peer = 2};
  const MessageFilter all{.peer = 2, .ends_with_any_peer = true};
  inbox_.LosePeer(1, absl::UnavailableError("reset"));
  Inbox::Waiter patient(one);
  EXPECT_FALSE(inbox_.Poll(patient).has_value());
  Inbox::Waiter needy(all);
  const std::optional<absl::StatusOr<Message>> result = inbox_.Poll(needy);
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(*result, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1")));
}

TEST_F(InboxTest, LosePeer_ArrivedStaysReadable_OffersAreVoid) {
  inbox_.Store(MakeMessage(1, {.epoch = kEpoch, .id = 1}));
  const auto wanted = inbox_.Offer(1, {.epoch = kEpoch, .id = 2}, 50000);
  ASSERT_TRUE(inbox_.NextWanted().has_value());
  ASSERT_TRUE(inbox_.Offer(1, {.epoch = kEpoch, .id = 3}, 90000).has_value());
  inbox_.LosePeer(1, absl::UnavailableError("reset"));
  inbox_.LosePeer(1, absl::UnavailableError("again"));
  inbox_.Fetched(*wanted, Payload(50000));
  EXPECT_EQ(inbox_.stored_bytes(), 1);
  EXPECT_FALSE(inbox_.NextWanted().has_value());

  const Inbox::Waiter from_lost({.peer = 1});
  const Inbox::Waiter from_any({});
  EXPECT_OK(*inbox_.Poll(from_lost));
  EXPECT_THAT(*inbox_.Poll(from_lost),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1 (w) is lost: reset")));
  EXPECT_FALSE(inbox_.Poll(from_any).has_value());
  inbox_.LosePeer(2, absl::UnavailableError("reset"));
  EXPECT_THAT(*inbox_.Poll(from_any),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1 (w)")));
  EXPECT_THAT(inbox_.failure(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1 (w)")));
}

TEST_F(InboxTest, Store_FromUnknownOrLostPeer_Ignored) {
  inbox_.Store(MakeMessage(9, {.epoch = kEpoch}));
  inbox_.LosePeer(1, absl::UnavailableError("reset"));
  inbox_.Store(MakeMessage(1, {.epoch = kEpoch}));
  EXPECT_EQ(Read({}), -1);
  EXPECT_EQ(inbox_.stored_bytes(), 0);
}

TEST_F(InboxTest, Abort_First_EndsEverything) {
  inbox_.Store(MakeMessage(1, {.epoch = kEpoch}));
  inbox_.Abort(absl::AbortedError("step 3 failed"));
  inbox_.Abort(absl::InternalError("later"));
  const Inbox::Waiter waiter({});
  EXPECT_THAT(*inbox_.Poll(waiter), StatusIs(absl::StatusCode::kAborted, HasSubstr("step 3")));
  EXPECT_THAT(inbox_.CheckPeer(1), StatusIs(absl::StatusCode::kAborted, HasSubstr("step 3")));
  EXPECT_THAT(*inbox_.AllConnected(), StatusIs(absl::StatusCode::kAborted, HasSubstr("step 3")));
  EXPECT_THAT(inbox_.AddPeer({.number = 5, .name = "", .token = {}}),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("step 3")));
}

TEST_F(InboxTest, Poll_Stopped_Cancelled) {
  std::atomic<bool> stop = false;
  const Inbox::Waiter waiter({}, &stop);
  EXPECT_FALSE(inbox_.Poll(waiter).has_value());
  stop = true;
  EXPECT_THAT(*inbox_.Poll(waiter), StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
}

TEST_F(InboxTest, AddPeer_BadNumber_Refused) {
  for (const int32_t number : {-1, 0}) {
    EXPECT_THAT(inbox_.AddPeer({.number = number, .name = "x", .token = {}}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("(x)")));
  }
  EXPECT_THAT(inbox_.AddPeer({.number = 1, .name = "x", .token = {}}),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("peer 1 (w)")));
}

TEST_F(InboxTest, AllConnected_OneMissing_NamesIt) {
  EXPECT_OK(*inbox_.AllConnected());
  ASSERT_OK(inbox_.AddPeer({.number = 4, .name = "late", .token = {}}));
  EXPECT_FALSE(inbox_.AllConnected().has_value());
  EXPECT_THAT(inbox_.PeersMissing(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("peer 4 (late)")));
  EXPECT_THAT(inbox_.CheckPeer(4), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("late")));
  inbox_.RemovePeer(4);
  inbox_.RemovePeer(1);  // is connected: stays
  EXPECT_OK(*inbox_.AllConnected());
  EXPECT_OK(inbox_.CheckPeer(1));
}

TEST_F(InboxTest, Traffic_ReadAndSent_CountedByKind) {
  inbox_.Store(MakeMessage(2, {.epoch = kEpoch, .kind = 31}, 10));
  EXPECT_EQ(inbox_.traffic()[1].Total().messages_received, 0);
  EXPECT_EQ(Read({}), 0);
  inbox_.CountSent(2, 4, 100);
  const PeerTraffic traffic = inbox_.traffic()[1];
  EXPECT_EQ(traffic.kinds[31].bytes_received, 10);
  EXPECT_EQ(traffic.kinds[4].messages_sent, 1);
  EXPECT_EQ(traffic.Total().bytes_sent, 100);
  EXPECT_EQ(traffic.transport, "test");
}

}  // namespace
}  // namespace weft
