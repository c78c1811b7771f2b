#include "common/transport/loopback/loopback_network.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class LoopbackNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    transport_ = network_.NewTransport();
    ASSERT_OK_AND_ASSIGN(a_, transport_->NewPort({.own_number = 0, .limits = {}}));
    ASSERT_OK_AND_ASSIGN(b_, transport_->NewPort({.own_number = 1, .limits = {}}));
    ASSERT_OK(a_->Expect({.number = 1, .name = "b", .token = {}}));
    ASSERT_OK(b_->Connect({.number = 0, .name = "a", .token = {}}, a_->address(), Now()));
  }

  static Clock::TimePoint Now() { return SystemClock().Now(); }
  void Send(int32_t id, int64_t bytes = 4) {
    ASSERT_OK(SendBytes(*a_, 1, {.id = id}, Payload(bytes)));
  }
  // Whether b has a message with that id now.
  bool Has(int32_t id) { return b_->Receive({.id = id}, Now()).ok(); }

  LoopbackNetwork network_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<MessagePort> a_;
  std::unique_ptr<MessagePort> b_;
};

TEST_F(LoopbackNetworkTest, SetRule_HoldAndDrop_ChosenMessagesOnly) {
  network_.SetRule([](int32_t from, int32_t to, const MessageHeader& header) {
    EXPECT_EQ(from, 0);
    EXPECT_EQ(to, 1);
    if (header.id == 1) return LoopbackFate::kDrop;
    return header.id >= 2 ? LoopbackFate::kHold : LoopbackFate::kDeliver;
  });
  Send(0);
  Send(1);
  Send(2);
  Send(3, 100000);
  EXPECT_TRUE(Has(0));
  EXPECT_FALSE(Has(1));
  EXPECT_FALSE(Has(2));
  EXPECT_EQ(network_.held_messages(), 2);
  network_.ReleaseHeld();
  EXPECT_TRUE(Has(3));
  EXPECT_TRUE(Has(2));
  EXPECT_FALSE(Has(1));
  EXPECT_EQ(network_.held_messages(), 0);
}

TEST_F(LoopbackNetworkTest, Disconnect_BothSidesLoseEachOther) {
  network_.Disconnect(b_->address(), a_->address());
  EXPECT_THAT(a_->Receive({}, Now()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1 (b)")));
  EXPECT_THAT(b_->Receive({}, Now()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 0 (a)")));
}

TEST_F(LoopbackNetworkTest, ReleaseHeld_SenderGone_Nothing) {
  network_.SetRule([](int32_t, int32_t, const MessageHeader&) { return LoopbackFate::kHold; });
  Send(0);
  a_.reset();
  network_.ReleaseHeld();
  EXPECT_THAT(b_->Receive({}, Now()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 0 (a)")));
}

}  // namespace
}  // namespace weft
