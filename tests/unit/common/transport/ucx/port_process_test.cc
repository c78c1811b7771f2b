// Ports whose other side is a process that is killed or stopped.
#include <signal.h>

#include <chrono>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/transport/ucx/ucx_transport.h"
#include "gtest/gtest.h"
#include "tests/support/child_process.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// How soon the loss of a process must be known; on a quiet machine it takes some milliseconds.
constexpr double kLossSeconds = 3;

Clock::TimePoint Late() { return SystemClock().Now() + std::chrono::seconds(60); }
Clock::TimePoint Soon() { return SystemClock().Now() + std::chrono::milliseconds(100); }

PortPeer ChildPeer() {
  PortPeer peer{.number = 1, .name = "child", .token = {}};
  peer.token.fill(0x5a);
  return peer;
}

struct Mode {
  std::string name;
  std::string transports;  // UCX_TLS
  std::string expected;    // what traffic() says
};

// A port of this process (0) that is connected with one of a child (1).
class PortProcessTest : public ::testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    UcxTransportOptions options;
    options.transports = GetParam().transports;
    ASSERT_OK_AND_ASSIGN(transport_, NewUcxTransport(options));
    PortOptions port_options;
    port_options.limits.send_timeout = std::chrono::milliseconds(300);
    port_options.limits.outgoing_bytes_per_peer = 3000000;
    ASSERT_OK_AND_ASSIGN(port_, transport_->NewPort(port_options));
    child_ = std::make_unique<ChildProcess>(
        std::vector<std::string>{WEFT_PORT_PROCESS, "1", "127.0.0.1", GetParam().transports});
    ASSERT_TRUE(child_->running());
    ASSERT_OK_AND_ASSIGN(address_, child_->ReadLine(Late()));
    ASSERT_OK_AND_ASSIGN(const std::string expected, child_->Ask("expect 0", Late()));
    ASSERT_EQ(expected, "OK");
    child_->Write("await 60000");
    ASSERT_OK(port_->Connect(ChildPeer(), address_, Late()));
    ASSERT_OK_AND_ASSIGN(const std::string awaited, child_->ReadLine(Late()));
    ASSERT_EQ(awaited, "OK");
  }

  absl::Status Send(int32_t id, int64_t bytes) {
    return SendBytes(*port_, 1, {.id = id}, Payload(bytes));
  }

  // Kills the child and checks that `wait` ends soon with its name.
  template <typename Wait>
  void KillDuring(Wait wait) {
    absl::Status status;
    Clock::TimePoint ended;
    Clock::TimePoint killed;
    {
      std::thread waiter([&] {
        status = wait();
        ended = SystemClock().Now();
      });
      // Long enough for the wait to begin in most runs; the test holds in all.
      (void)child_->ReadLine(Soon());
      killed = SystemClock().Now();
      child_->Kill();
      waiter.join();
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1 (child)")));
    EXPECT_LT(std::chrono::duration<double>(ended - killed).count(), kLossSeconds);
    EXPECT_THAT(port_->failure(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1 (child)")));
    EXPECT_THAT(Send(0, 10), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("(child)")));
    const Clock::TimePoint start = SystemClock().Now();
    port_.reset();
    EXPECT_LT(SecondsSince(SystemClock(), start), kLossSeconds);
  }

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<MessagePort> port_;
  std::unique_ptr<ChildProcess> child_;
  std::string address_;
};

TEST_P(PortProcessTest, Traffic_AfterExchange_NamesTransport) {
  child_->Write("echo 0 6");
  for (int32_t id = 0; id < 6; ++id) {
    const int64_t bytes = id % 2 == 0 ? 100 : 200000;
    ASSERT_OK(Send(id, bytes));
    ASSERT_OK_AND_ASSIGN(const Message message,
                         port_->Receive({.kinds = KindBit(1), .id = id}, Late()));
    EXPECT_EQ(static_cast<int64_t>(message.payload.size()), bytes);
  }
  EXPECT_EQ(port_->traffic()[0].transport, GetParam().expected);
  EXPECT_EQ(*child_->ReadLine(Late()), "OK");
  EXPECT_EQ(*child_->Ask("traffic", Late()), absl::StrCat(GetParam().expected, " 6 6"));
}

TEST_P(PortProcessTest, Kill_Idle_ReceiveEndsSoon) {
  KillDuring([&] { return port_->Receive({.peer = 1}, Late()).status(); });
}

TEST_P(PortProcessTest, Kill_WaitingForAny_ReceiveEndsSoon) {
  KillDuring([&] { return port_->Receive({}, Late()).status(); });
}

TEST_P(PortProcessTest, Kill_WhileSendingSmall_SendFailsSoon) {
  KillDuring([&] {
    absl::Status status;
    while (status.ok() || absl::IsDeadlineExceeded(status)) {
      status = Send(0, 1000);
      port_->Progress();
    }
    return status;
  });
}

TEST_P(PortProcessTest, Kill_LargeMessagesUnread_ReceiveEndsSoon) {
  child_->Signal(SIGSTOP);
  ASSERT_OK(Send(0, 1000000));
  ASSERT_OK(Send(1, 1000000));
  KillDuring([&] { return port_->Receive({.peer = 1}, Late()).status(); });
}

TEST_P(PortProcessTest, Kill_MidTransfer_ReceiveEndsSoon) {
  // The child offers what it cannot finish: it is stopped before this side asks for the bytes.
  child_->Write("send 0 7 50000000");
  ASSERT_EQ(*child_->ReadLine(Late()), "OK");
  child_->Signal(SIGSTOP);
  KillDuring([&] {
    // Shared memory is read without the child's help, so the message itself may still come.
    const absl::Status first = port_->Receive({.peer = 1, .id = 7}, Late()).status();
    return first.ok() ? port_->Receive({.peer = 1, .id = 8}, Late()).status() : first;
  });
}

TEST_P(PortProcessTest, Stop_NothingComes_DeadlinesEndAndItGoesOn) {
  child_->Signal(SIGSTOP);
  EXPECT_THAT(port_->Receive({.peer = 1}, Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("child")));
  absl::Status status;
  int32_t sent = 0;
  while (status.ok() && sent < 100) {
    status = Send(sent, 1000000);
    if (status.ok()) ++sent;
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("child")));
  EXPECT_OK(port_->failure());
  child_->Signal(SIGCONT);
  child_->Write(absl::StrCat("echo 0 ", sent));
  for (int32_t id = 0; id < sent; ++id) {
    EXPECT_OK(port_->Receive({.kinds = KindBit(1), .id = id}, Late()));
  }
  EXPECT_EQ(*child_->ReadLine(Late()), "OK");
}

TEST_P(PortProcessTest, Stop_ThenDestroy_ReturnsSoon) {
  child_->Signal(SIGSTOP);
  ASSERT_OK(Send(0, 2000000));
  for (int32_t id = 1; id < 50; ++id) (void)Send(id, 10000);
  const Clock::TimePoint start = SystemClock().Now();
  port_.reset();
  EXPECT_LT(SecondsSince(SystemClock(), start), kLossSeconds);
}

TEST_P(PortProcessTest, Destroy_ChildWaits_ItLearnsSoon) {
  child_->Write("receive 0 1 60000");
  port_.reset();
  ASSERT_OK_AND_ASSIGN(const std::string line, child_->ReadLine(Late()));
  EXPECT_THAT(line, HasSubstr("UNAVAILABLE: peer 0 (w0)"));
}

TEST_P(PortProcessTest, Connect_ChildWasKilled_UnavailableSoon) {
  child_->Kill();
  ASSERT_OK_AND_ASSIGN(const auto other, transport_->NewPort({.own_number = 3, .limits = {}}));
  const Clock::TimePoint start = SystemClock().Now();
  EXPECT_THAT(other->Connect(ChildPeer(), address_, Late()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1 (child)")));
  EXPECT_LT(SecondsSince(SystemClock(), start), kLossSeconds);
}

TEST_P(PortProcessTest, Connect_ChildIsStopped_DeadlineExceeded) {
  ASSERT_EQ(*child_->Ask("expect 3", Late()), "OK");
  child_->Signal(SIGSTOP);
  ASSERT_OK_AND_ASSIGN(const auto other, transport_->NewPort({.own_number = 3, .limits = {}}));
  EXPECT_THAT(other->Connect(ChildPeer(), address_, Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("peer 1 (child)")));
  EXPECT_OK(other->failure());
  child_->Signal(SIGCONT);
  child_->Write("await 60000");
  EXPECT_OK(other->Connect(ChildPeer(), address_, Late()));
  EXPECT_EQ(*child_->ReadLine(Late()), "OK");
}

TEST_P(PortProcessTest, Connect_ChildIsStopped_PortEndsQuietly) {
  ASSERT_EQ(*child_->Ask("expect 3", Late()), "OK");
  child_->Signal(SIGSTOP);
  for (const bool try_twice : {false, true}) {
    ASSERT_OK_AND_ASSIGN(auto other, transport_->NewPort({.own_number = 3, .limits = {}}));
    for (int i = 0; i < (try_twice ? 2 : 1); ++i) {
      EXPECT_THAT(other->Connect(ChildPeer(), address_, Soon()),
                  StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("peer 1 (child)")));
    }
    other.reset();
  }
}

INSTANTIATE_TEST_SUITE_P(Ucx, PortProcessTest,
                         ::testing::Values(Mode{"memory", "", "posix+cma"},
                                           Mode{"tcp", "tcp", "tcp"}),
                         [](const auto& chosen) { return chosen.param.name; });

}  // namespace
}  // namespace weft
