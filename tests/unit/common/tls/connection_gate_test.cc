#include "common/tls/connection_gate.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/tls/client_hello.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kPatience{20};

// The least ClientHello that offers TLS 1.3, or 1.2 only.
std::string Hello(bool offers_13) {
  std::string extension = {0, 43, 0, 3, 2, 3, static_cast<char>(offers_13 ? 4 : 3)};
  std::string body = {3, 3};
  body += std::string(32, 'r');
  body += std::string({0, 0, 2, 0x13, 1, 1, 0, 0, static_cast<char>(extension.size())});
  body += extension;
  const auto size = static_cast<char>(body.size());
  return std::string({22, 3, 1, 0, static_cast<char>(size + 4), 1, 0, 0, size}) + body;
}

class Client {
 public:
  Client(int32_t port, const char* source) : descriptor_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    inet_pton(AF_INET, source, &place.sin_addr);
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
    inet_pton(AF_INET, "127.0.0.1", &place.sin_addr);
    place.sin_port = htons(static_cast<uint16_t>(port));
    (void)connect(descriptor_, reinterpret_cast<sockaddr*>(&place), sizeof place);
  }
  ~Client() { close(descriptor_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Say(const std::string& bytes) const {
    send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // As the other side sees it.
  std::string name() const {
    sockaddr_in place = {};
    socklen_t size = sizeof place;
    getsockname(descriptor_, reinterpret_cast<sockaddr*>(&place), &size);
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &place.sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(ntohs(place.sin_port));
  }
  // Everything that arrives until the connection is closed; "?" where it is not.
  std::string Rest() const {
    std::string all;
    while (true) {
      pollfd waiting = {descriptor_, POLLIN, 0};
      const auto patience = std::chrono::milliseconds(kPatience).count();
      if (poll(&waiting, 1, static_cast<int>(patience)) != 1) return "?";
      char buffer[256];
      const ssize_t count = recv(descriptor_, buffer, sizeof buffer, 0);
      if (count <= 0) return all;
      all.append(buffer, static_cast<size_t>(count));
    }
  }

 private:
  const int descriptor_;
};

class ConnectionGateTest : public testing::Test {
 protected:
  ~ConnectionGateTest() override {
    gate_.reset();
    for (const int descriptor : taken_) close(descriptor);
  }

  void Open(const GateLimits& limits, GateProtocol protocol = GateProtocol::kTls13) {
    auto gate = ConnectionGate::Listen({.host = "127.0.0.1", .port = 0, .socket_path = {}}, limits,
                                       clock_, logger_, protocol);
    ASSERT_TRUE(gate.ok()) << gate.status();
    gate_ = *std::move(gate);
    ASSERT_OK(gate_->Start([this](int descriptor, std::string bytes) {
      MutexLock lock(mutex_);
      taken_.push_back(descriptor);
      bytes_ = std::move(bytes);
      changed_.NotifyAll();
    }));
  }
  // Whether so many were let through in time.
  bool AwaitTaken(size_t count, std::chrono::milliseconds patience = kPatience) {
    MutexLock lock(mutex_);
    const Clock::TimePoint deadline = clock_.Now() + patience;
    while (taken_.size() < count && changed_.WaitUntil(mutex_, deadline)) {
    }
    return taken_.size() >= count;
  }
  size_t taken() {
    MutexLock lock(mutex_);
    return taken_.size();
  }

  const SystemClock clock_;
  Logger logger_{"gate_test", LogLevel::kError};
  Mutex mutex_;
  CondVar changed_;
  std::vector<int> taken_;
  std::string bytes_;
  std::unique_ptr<ConnectionGate> gate_;
};

TEST_F(ConnectionGateTest, BeginningOfTls13_IsHandedOverWithItsBytes) {
  Open({});
  const Client client(gate_->port(), "127.0.0.1");
  const std::string hello = Hello(true);
  ASSERT_EQ(ReadFirstBytes(hello), FirstBytes::kTls13);
  client.Say(hello.substr(0, 20));
  client.Say(hello.substr(20));
  ASSERT_TRUE(AwaitTaken(1));
  EXPECT_EQ(bytes_, hello);
}

TEST_F(ConnectionGateTest, OldTls_GetsAnAlert) {
  Open({});
  const Client client(gate_->port(), "127.0.0.1");
  ASSERT_EQ(ReadFirstBytes(Hello(false)), FirstBytes::kOldTls);
  client.Say(Hello(false));
  EXPECT_EQ(client.Rest(), ProtocolVersionAlert());
  EXPECT_EQ(taken(), 0);
}

TEST_F(ConnectionGateTest, WithoutTls_Http2IsHandedOver_AndTlsIsToldSo) {
  Open({}, GateProtocol::kHttp2);
  const Client secured(gate_->port(), "127.0.0.1");
  secured.Say(Hello(true));
  EXPECT_EQ(secured.Rest(), std::string({0, 0, 0, 4, 0, 0, 0, 0, 0}));
  const Client other(gate_->port(), "127.0.0.1");
  other.Say("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(other.Rest(), "");
  EXPECT_EQ(taken(), 0);
  const Client client(gate_->port(), "127.0.0.1");
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  client.Say(preface);
  ASSERT_TRUE(AwaitTaken(1));
  EXPECT_EQ(bytes_, preface);
}

TEST_F(ConnectionGateTest, OtherProtocols_AreClosed) {
  Open({});
  for (const char* words : {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "\n"}) {
    const Client client(gate_->port(), "127.0.0.1");
    client.Say(words);
    EXPECT_EQ(client.Rest(), "") << words;
  }
  EXPECT_EQ(taken(), 0);
}

TEST_F(ConnectionGateTest, Silence_EndsInTime) {
  Open({.first_bytes = std::chrono::milliseconds(200)});
  const Client silent(gate_->port(), "127.0.0.1");
  const Client slow(gate_->port(), "127.0.0.1");
  slow.Say(Hello(true).substr(0, 30));
  EXPECT_EQ(silent.Rest(), "");
  EXPECT_EQ(slow.Rest(), "");
  EXPECT_EQ(taken(), 0);
}

TEST_F(ConnectionGateTest, OneAddress_CannotTakeTheOthersPlaces) {
  Open({.first_bytes = std::chrono::hours(1),
        .handshake = std::chrono::hours(1),
        .connections = 8,
        .connections_per_host = 4});
  std::vector<std::unique_ptr<Client>> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(std::make_unique<Client>(gate_->port(), "127.0.0.9"));
  }
  for (size_t i = 4; i < strangers.size(); ++i) EXPECT_EQ(strangers[i]->Rest(), "") << i;
  const Client known(gate_->port(), "127.0.0.1");
  known.Say(Hello(true));
  EXPECT_TRUE(AwaitTaken(1));
}

TEST_F(ConnectionGateTest, Places_AreFreeAgainAfterTheHandshakesTime) {
  Open({.first_bytes = std::chrono::hours(1),
        .handshake = std::chrono::milliseconds(300),
        .connections = 8,
        .connections_per_host = 1});
  for (size_t i = 1; i <= 3; ++i) {
    const Clock::TimePoint deadline = clock_.Now() + kPatience;
    bool through = false;
    while (!through && clock_.Now() < deadline) {
      const Client client(gate_->port(), "127.0.0.1");
      client.Say(Hello(true));
      through = AwaitTaken(i, std::chrono::milliseconds(100));  // else it was refused
    }
    EXPECT_TRUE(through);
    EXPECT_EQ(taken(), i);
  }
}

TEST_F(ConnectionGateTest, WhoIsKnown_TakesNoPlace) {
  Open({.first_bytes = std::chrono::hours(1),
        .handshake = std::chrono::hours(1),
        .connections = 1,
        .connections_per_host = 1});
  for (size_t i = 1; i <= 5; ++i) {
    const Client client(gate_->port(), "127.0.0.1");
    client.Say(Hello(true));
    ASSERT_TRUE(AwaitTaken(i));
    gate_->SetKnown("127.0.0.1:0");
    gate_->SetKnown("");
    const Client refused(gate_->port(), "127.0.0.1");
    EXPECT_EQ(refused.Rest(), "");
    gate_->SetKnown(client.name());
    gate_->SetKnown(client.name());  // it has no second place
  }
}

TEST_F(ConnectionGateTest, AddressOfAnother_IsNamed) {
  Open({});
  EXPECT_THAT(
      ConnectionGate::Listen({.host = "127.0.0.1", .port = gate_->port(), .socket_path = {}}, {},
                             clock_, logger_),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("in use")));
}

}  // namespace
}  // namespace weft
