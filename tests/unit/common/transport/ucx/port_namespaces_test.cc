// Ports in network namespaces that stand for machines: they find each other by tcp, and a link that
// goes down is noticed by deadlines only.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/child_process.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Clock::TimePoint Late() { return SystemClock().Now() + std::chrono::seconds(60); }

// Two namespaces, joined by a virtual cable; removed at the end.
class TwoNamespaces {
 public:
  TwoNamespaces()
      : left_(absl::StrCat("weft-l-", getpid())), right_(absl::StrCat("weft-r-", getpid())) {
    usable_ = Ip(absl::StrCat("netns add ", left_)) && Ip(absl::StrCat("netns add ", right_)) &&
              Ip(absl::StrCat("-n ", left_, " link add cable type veth peer name cable netns ",
                              right_)) &&
              Start(left_, "1") && Start(right_, "2") && AwaitCarrier(left_) &&
              AwaitCarrier(right_);
  }
  ~TwoNamespaces() {
    (void)Ip(absl::StrCat("netns del ", left_));
    (void)Ip(absl::StrCat("netns del ", right_));
  }
  TwoNamespaces(const TwoNamespaces&) = delete;
  TwoNamespaces& operator=(const TwoNamespaces&) = delete;

  bool usable() const { return usable_; }
  void SetCable(const char* state) {
    ASSERT_TRUE(Ip(absl::StrCat("-n ", left_, " link set cable ", state)));
  }
  std::unique_ptr<ChildProcess> Run(bool right, const std::string& number,
                                    const std::string& address, const std::string& transports) {
    return std::make_unique<ChildProcess>(
        std::vector<std::string>{"ip", "netns", "exec", right ? right_ : left_, WEFT_PORT_PROCESS,
                                 number, address, transports});
  }

 private:
  static bool Ip(const std::string& arguments) {
    // NOLINTNEXTLINE(bugprone-command-processor): the words are this test's own.
    return std::system(absl::StrCat("ip ", arguments, " > /dev/null 2>&1").c_str()) == 0;
  }
  static bool Start(const std::string& name, const std::string& number) {
    return Ip(absl::StrCat("-n ", name, " addr add 10.99.0.", number, "/24 dev cable")) &&
           Ip(absl::StrCat("-n ", name, " addr add fd77::", number, "/64 dev cable nodad")) &&
           Ip(absl::StrCat("-n ", name, " link set cable up")) &&
           Ip(absl::StrCat("-n ", name, " link set lo up"));
  }

  // The cable works some time after both ends are up; UCX ignores an interface before that.
  static bool AwaitCarrier(const std::string& name) {
    const Clock::TimePoint late = Late();
    while (SystemClock().Now() < late) {
      if (Ip(absl::StrCat("-n ", name, " -o link show cable | grep -q 'state UP'"))) return true;
    }
    return false;
  }

  std::string left_;
  std::string right_;
  bool usable_ = false;
};

class PortNamespacesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!namespaces_.usable()) GTEST_SKIP() << "network namespaces need root and iproute2";
  }

  // Starts ports 1 and 2 at these addresses and connects them.
  void Connect(const std::string& first, const std::string& second, const std::string& transports) {
    left_ = namespaces_.Run(false, "1", first, transports);
    right_ = namespaces_.Run(true, "2", second, transports);
    ASSERT_OK_AND_ASSIGN(const std::string left, left_->ReadLine(Late()));
    ASSERT_OK_AND_ASSIGN(const std::string right, right_->ReadLine(Late()));
    ASSERT_THAT(left, StartsWith("ucx1 "));
    ASSERT_THAT(right, StartsWith("ucx1 "));
    EXPECT_EQ(*right_->Ask("expect 1", Late()), "OK");
    EXPECT_EQ(*left_->Ask(absl::StrCat("connect 2 ", right), Late()), "OK");
    EXPECT_EQ(*right_->Ask("await 60000", Late()), "OK");
  }

  void Exchange(int id) {
    EXPECT_EQ(*left_->Ask(absl::StrCat("send 2 ", id, " 100"), Late()), "OK");
    EXPECT_EQ(*right_->Ask(absl::StrCat("receive 1 ", id, " 60000"), Late()), "OK");
    EXPECT_EQ(*right_->Ask(absl::StrCat("send 1 ", id, " 1000000"), Late()), "OK");
    EXPECT_EQ(*left_->Ask(absl::StrCat("receive 2 ", id, " 60000"), Late()), "OK");
  }

  TwoNamespaces namespaces_;
  std::unique_ptr<ChildProcess> left_;
  std::unique_ptr<ChildProcess> right_;
};

TEST_F(PortNamespacesTest, Connect_DefaultTransports_NoSharedMemoryAcross) {
  Connect("10.99.0.1", "10.99.0.2", "");
  Exchange(1);
  EXPECT_EQ(*left_->Ask("traffic", Late()), "tcp 1 1");
  EXPECT_EQ(*right_->Ask("traffic", Late()), "tcp 1 1");
}

TEST_F(PortNamespacesTest, Connect_Ipv6_Exchanges) {
  Connect("fd77::1", "fd77::2", "tcp");
  Exchange(1);
  EXPECT_EQ(*left_->Ask("traffic", Late()), "tcp 1 1");
}

TEST_F(PortNamespacesTest, Connect_FamiliesDiffer_Unavailable) {
  left_ = namespaces_.Run(false, "1", "10.99.0.1", "tcp");
  right_ = namespaces_.Run(true, "2", "fd77::2", "tcp");
  ASSERT_OK(left_->ReadLine(Late()));
  ASSERT_OK_AND_ASSIGN(const std::string right, right_->ReadLine(Late()));
  EXPECT_THAT(*left_->Ask(absl::StrCat("connect 2 ", right), Late()),
              HasSubstr("UNAVAILABLE: peer 2 (w2)"));
}

TEST_F(PortNamespacesTest, LinkDown_ReceiveEndsAtDeadline_AndGoesOnWhenUp) {
  Connect("10.99.0.1", "10.99.0.2", "tcp");
  Exchange(1);
  namespaces_.SetCable("down");
  EXPECT_THAT(*left_->Ask("receive 2 9 300", Late()),
              StartsWith("DEADLINE_EXCEEDED: no message before the deadline"));
  namespaces_.SetCable("up");
  Exchange(2);
}

}  // namespace
}  // namespace weft
