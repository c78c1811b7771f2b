// What a port does with connections and messages that no port of ours would make.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/transport/ucx/ucx_transport.h"
#include "common/transport/ucx/ucx_worker.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

Clock::TimePoint Late() { return SystemClock().Now() + std::chrono::seconds(60); }

PortPeer Peer(int32_t number) {
  PortPeer peer{.number = number, .name = absl::StrCat("w", number), .token = {}};
  peer.token.fill(0x5a);
  return peer;
}

// Somebody with UCX who says what he likes; remembers what he hears.
class Enemy final : public UcxWorkerEvents {
 public:
  Enemy(bool tcp, const std::string& victim_address) : pool_(0) {
    auto context =
        UcxContext::Create(tcp ? UcxMode::kRemote : UcxMode::kLocal, tcp ? "tcp" : "", "lo", false);
    auto own = ParseSocketAddress("127.0.0.1:0");
    auto worker = UcxWorker::Create(*context, {*own}, *this, pool_);
    worker_ = *std::move(worker);
    const auto victim = ParsePortAddress(victim_address);
    address_ = *ParseSocketAddress(tcp ? victim->remote : victim->local);
  }

  UcxConnection* Connect() { return *worker_->Connect(address_); }
  UcxWorker& worker() { return *worker_; }
  void Close() { worker_.reset(); }
  // Works until something was heard or the connection was lost: "challenge", "lost", or the words
  // of a refusal.
  std::string Hear() {
    const Clock::TimePoint late = Late();
    while (heard_.empty() && SystemClock().Now() < late) {
      if (!worker_->Progress()) std::this_thread::yield();
    }
    return std::exchange(heard_, "");
  }
  const Challenge& challenge() const { return challenge_; }

  void OnHello(UcxConnection&, absl::Span<const uint8_t>) override {}
  void OnControl(UcxConnection&, unsigned id, absl::Span<const uint8_t> bytes) override {
    if (id == kChallengeMessage) {
      challenge_ = DecodeChallenge(bytes).value_or(Challenge());
      heard_ = "challenge";
    } else if (id == kRefusalMessage) {
      const std::optional<Refusal> refusal = DecodeRefusal(bytes);
      heard_ = refusal.has_value() ? std::string(RefusalText(*refusal)) : "nonsense";
    }
  }
  void OnIntrusion(UcxConnection&) override {}
  void OnDrop(UcxConnection&, Refusal) override {}
  void OnMessage(UcxConnection&, absl::Span<const uint8_t>, Payload) override {}
  std::optional<int64_t> OnOffer(UcxConnection&, absl::Span<const uint8_t>, int64_t) override {
    return std::nullopt;
  }
  void OnFetched(int64_t, Payload) override {}
  void OnFetchFailed(int64_t, const absl::Status&) override {}
  void OnSent(UcxConnection&) override {}
  void OnLost(UcxConnection&, const absl::Status&) override { heard_ = "lost"; }

 private:
  PayloadPool pool_;
  std::string heard_;
  Challenge challenge_;
  SocketAddress address_;
  std::unique_ptr<UcxWorker> worker_;
};

// A port 0 that expects peers 1 and 2, and an enemy; with shared memory and with tcp.
class HostilePeerTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    UcxTransportOptions options;
    options.transports = GetParam() ? "tcp" : "";
    ASSERT_OK_AND_ASSIGN(transport_, NewUcxTransport(options));
    PortOptions port_options;
    port_options.session = 5;
    port_options.key = key_;
    port_options.logger = &logger_;
    port_options.limits.max_message_bytes = 1000000;
    ASSERT_OK_AND_ASSIGN(port_, transport_->NewPort(port_options));
    ASSERT_OK(port_->Expect(Peer(1)));
    ASSERT_OK(port_->Expect(Peer(2)));
    driver_ = std::thread([this] { (void)port_->Receive({.kinds = 0}, Late(), &stop_); });
    enemy_ = std::make_unique<Enemy>(GetParam(), port_->address());
  }

  void TearDown() override {
    stop_ = true;
    port_->Wake();
    driver_.join();
  }

  static Hello GoodHello() {
    return {.session = 5,
            .from = 1,
            .to = 0,
            .nonce = *NewPeerNonce(),
            .address = DigestOfAddress("enemy")};
  }

  // What the enemy would have to prove after `hello` and the challenge it heard.
  PeerHandshake HandshakeOf(const Hello& hello) const {
    return {.session = hello.session,
            .connector = hello.from,
            .listener = hello.to,
            .token = Peer(1).token,
            .connector_nonce = hello.nonce,
            .listener_nonce = enemy_->challenge().nonce,
            .connector_address = hello.address,
            .listener_address = DigestOfAddress(port_->address())};
  }

  void SayHello(UcxConnection& connection, const Hello& hello) {
    EXPECT_OK(enemy_->worker().SendControl(connection, kHelloMessage, EncodeHello(hello)));
  }

  void SendProof(UcxConnection& connection, const SessionKey& key, PeerSide side,
                 const PeerHandshake& handshake) {
    EXPECT_OK(enemy_->worker().SendControl(connection, kProofMessage,
                                           EncodeProof(*ProveSide(key, side, handshake))));
  }

  // A connection that was taken for that of peer 1.
  UcxConnection* Enter() {
    UcxConnection* connection = enemy_->Connect();
    const Hello hello = GoodHello();
    SayHello(*connection, hello);
    EXPECT_EQ(enemy_->Hear(), "challenge");
    enemy_->worker().SetProven(*connection);
    SendProof(*connection, key_, PeerSide::kConnector, HandshakeOf(hello));
    return connection;
  }

  // A proof that is refused, over a connection of its own.
  void ExpectRefused(const SessionKey& key, PeerSide side,
                     const std::function<void(PeerHandshake&)>& change) {
    UcxConnection* connection = enemy_->Connect();
    const Hello hello = GoodHello();
    SayHello(*connection, hello);
    ASSERT_EQ(enemy_->Hear(), "challenge");
    PeerHandshake handshake = HandshakeOf(hello);
    change(handshake);
    SendProof(*connection, key, side, handshake);
    EXPECT_THAT(enemy_->Hear(), HasSubstr("proof of the session's key is wrong"));
  }

  void ExpectFailure(const std::string& words) {
    const Clock::TimePoint late = Late();
    while (port_->failure().ok() && SystemClock().Now() < late) {
      if (!enemy_->worker().Progress()) std::this_thread::yield();
    }
    EXPECT_THAT(port_->failure(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)));
    EXPECT_THAT(port_->failure(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("peer 1 (w1)")));
  }

  // The port still does its work with an honest peer.
  void ExpectHealthy() {
    PortOptions options;
    options.session = 5;
    options.own_number = 2;
    options.key = key_;
    ASSERT_OK_AND_ASSIGN(const auto honest, transport_->NewPort(options));
    ASSERT_OK(honest->Connect(Peer(0), port_->address(), Late()));
    ASSERT_OK(SendBytes(*honest, 0, {}, Payload(100)));
    EXPECT_OK(port_->Receive({.peer = 2}, Late()));
    EXPECT_OK(port_->failure());
  }

  const SessionKey key_ = *SessionKey::New();
  Logger logger_{"port", LogLevel::kInfo};
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<MessagePort> port_;
  std::unique_ptr<Enemy> enemy_;
  std::thread driver_;
  std::atomic<bool> stop_ = false;
};

TEST_P(HostilePeerTest, Hello_Mangled_Refused) {
  const auto good = EncodeHello(GoodHello());
  for (const size_t size : {size_t{0}, size_t{1}, size_t{40}, size_t{87}}) {
    UcxConnection* connection = enemy_->Connect();
    ASSERT_OK(enemy_->worker().SendControl(*connection, kHelloMessage,
                                           absl::MakeConstSpan(good).subspan(0, size)));
    EXPECT_THAT(enemy_->Hear(), HasSubstr("came before the proof"));
  }
  // Up to the numbers; what comes then is the enemy's to choose.
  for (size_t place = 0; place < 24; place += 4) {
    auto bad = good;
    bad[place] ^= 0x80;
    UcxConnection* connection = enemy_->Connect();
    ASSERT_OK(enemy_->worker().SendControl(*connection, kHelloMessage, bad));
    EXPECT_THAT(enemy_->Hear(), HasSubstr(place < 8 ? "came before the proof" : "is expected"))
        << place;
  }
  ExpectHealthy();
}

TEST_P(HostilePeerTest, Challenge_ProvesTheListener) {
  UcxConnection* connection = enemy_->Connect();
  const Hello hello = GoodHello();
  SayHello(*connection, hello);
  ASSERT_EQ(enemy_->Hear(), "challenge");
  const PeerHandshake handshake = HandshakeOf(hello);
  EXPECT_TRUE(IsProofOf(key_, PeerSide::kListener, handshake, enemy_->challenge().proof));
  EXPECT_FALSE(
      IsProofOf(*SessionKey::New(), PeerSide::kListener, handshake, enemy_->challenge().proof));
}

TEST_P(HostilePeerTest, Proof_Wrong_Refused) {
  const auto nothing = [](PeerHandshake&) {};
  ExpectRefused(*SessionKey::New(), PeerSide::kConnector, nothing);  // of another session
  ExpectRefused({}, PeerSide::kConnector, nothing);
  ExpectRefused(key_, PeerSide::kListener, nothing);  // the port's own, reflected
  ExpectRefused(key_, PeerSide::kConnector, [](PeerHandshake& h) { h.connector = 2; });
  ExpectRefused(key_, PeerSide::kConnector, [](PeerHandshake& h) { h.token[0] ^= 1; });
  ExpectRefused(key_, PeerSide::kConnector,
                [](PeerHandshake& h) { h.listener_address = DigestOfAddress("elsewhere"); });
  ExpectRefused(key_, PeerSide::kConnector,
                [](PeerHandshake& h) { h.connector_address = DigestOfAddress("elsewhere"); });
  ExpectHealthy();
}

// Everything that an honest peer said, once more over another connection.
TEST_P(HostilePeerTest, Proof_Replayed_Refused) {
  const Hello hello = GoodHello();
  UcxConnection* first = enemy_->Connect();
  SayHello(*first, hello);
  ASSERT_EQ(enemy_->Hear(), "challenge");
  const PeerHandshake old = HandshakeOf(hello);
  UcxConnection* second = enemy_->Connect();
  SayHello(*second, hello);
  ASSERT_EQ(enemy_->Hear(), "challenge");
  EXPECT_NE(enemy_->challenge().nonce, old.listener_nonce);
  SendProof(*second, key_, PeerSide::kConnector, old);
  EXPECT_THAT(enemy_->Hear(), HasSubstr("is wrong"));
  ExpectHealthy();
}

TEST_P(HostilePeerTest, Proof_HalfOrBeforeHello_Refused) {
  UcxConnection* connection = enemy_->Connect();
  SendProof(*connection, key_, PeerSide::kConnector, {});
  EXPECT_THAT(enemy_->Hear(), HasSubstr("came before the proof"));
  connection = enemy_->Connect();
  SayHello(*connection, GoodHello());
  ASSERT_EQ(enemy_->Hear(), "challenge");
  const auto proof = EncodeProof({});
  ASSERT_OK(enemy_->worker().SendControl(*connection, kProofMessage,
                                         absl::MakeConstSpan(proof).subspan(0, 20)));
  EXPECT_THAT(enemy_->Hear(), HasSubstr("is wrong"));
  ExpectHealthy();
}

TEST_P(HostilePeerTest, Stranger_SendsEverything_RefusedAndNothingTaken) {
  for (int what = 0; what < 5; ++what) {
    UcxConnection* connection = enemy_->Connect();
    UcxWorker& worker = enemy_->worker();
    // Between hello and proof, too.
    if (what == 4) {
      SayHello(*connection, GoodHello());
      ASSERT_EQ(enemy_->Hear(), "challenge");
    }
    if (what == 0 || what == 4) {
      ASSERT_OK(worker.SendData(*connection, {}, Payload(100)));
    }
    if (what == 1) {
      ASSERT_OK(worker.SendData(*connection, {}, Payload(500000)));
    }
    if (what == 2) {
      ASSERT_OK(worker.SendControl(*connection, kChallengeMessage, EncodeChallenge({})));
    }
    if (what == 3) {
      ASSERT_OK(worker.SendControl(*connection, 99, EncodeProof({})));
      ASSERT_OK(worker.SendControl(*connection, kHelloMessage, {}));
    }
    EXPECT_THAT(enemy_->Hear(), HasSubstr("came before the proof")) << what;
  }
  for (const PeerTraffic& traffic : port_->traffic()) {
    EXPECT_EQ(traffic.Total().messages_received + traffic.messages_dropped, 0);
  }
  ExpectHealthy();
}

TEST_P(HostilePeerTest, Strangers_Many_HonestPeerStillConnects) {
  for (int i = 0; i < 200; ++i) {
    UcxConnection* connection = enemy_->Connect();
    if (i % 2 == 0) SayHello(*connection, GoodHello());
    (void)enemy_->worker().Progress();
  }
  ExpectHealthy();
}

TEST_P(HostilePeerTest, Stranger_SaysNothing_DroppedInTime) {
  const Clock::TimePoint start = SystemClock().Now();
  UcxConnection* connection = enemy_->Connect();
  SayHello(*connection, GoodHello());
  ASSERT_EQ(enemy_->Hear(), "challenge");
  EXPECT_THAT(enemy_->Hear(), HasSubstr("no proof of the session's key came in time"));
  const double seconds = SecondsSince(SystemClock(), start);
  EXPECT_GE(seconds, 4.9);
  EXPECT_LT(seconds, 30);
  ExpectHealthy();
}

TEST_P(HostilePeerTest, Hello_Twice_Refused_AndIgnoredOnceProven) {
  UcxConnection* twice = enemy_->Connect();
  SayHello(*twice, GoodHello());
  ASSERT_EQ(enemy_->Hear(), "challenge");
  SayHello(*twice, GoodHello());
  EXPECT_THAT(enemy_->Hear(), HasSubstr("came before the proof"));

  UcxConnection* connection = Enter();
  SayHello(*connection, GoodHello());
  // Until the proof has arrived the port still hopes for a better connection.
  const Clock::TimePoint late = Late();
  while (port_->traffic()[0].transport.empty() && SystemClock().Now() < late) {
    (void)enemy_->worker().Progress();
  }
  UcxConnection* second = enemy_->Connect();
  SayHello(*second, GoodHello());
  EXPECT_THAT(enemy_->Hear(), HasSubstr("no such connection is expected"));
  ExpectHealthy();
}

// Somebody listens where a peer should, and has no key.
TEST_P(HostilePeerTest, Listener_WithoutKey_ConnectFailsWithReason) {
  PortOptions options;
  options.session = 5;
  ASSERT_OK_AND_ASSIGN(const auto impostor, transport_->NewPort(options));  // another key
  ASSERT_OK(impostor->Expect(Peer(2)));
  std::atomic<bool> stop = false;
  std::thread driver([&] { (void)impostor->Receive({.kinds = 0}, Late(), &stop); });
  options.own_number = 2;
  options.key = key_;
  ASSERT_OK_AND_ASSIGN(const auto honest, transport_->NewPort(options));
  EXPECT_THAT(honest->Connect(Peer(0), impostor->address(), Late()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("its proof of the session's key is wrong")));
  EXPECT_OK(honest->failure());
  EXPECT_OK(impostor->failure());
  EXPECT_OK(honest->Connect(Peer(0), port_->address(), Late()));
  stop = true;
  impostor->Wake();
  driver.join();
}

TEST_P(HostilePeerTest, Data_HeaderTooShort_FailsNamingPeer) {
  UcxConnection* connection = Enter();
  ASSERT_OK(enemy_->worker().SendControl(*connection, kDataMessage, {}));
  ExpectFailure("without a header");
}

TEST_P(HostilePeerTest, Data_HeaderTooLong_FailsNamingPeer) {
  UcxConnection* connection = Enter();
  ASSERT_OK(enemy_->worker().SendControl(*connection, kDataMessage, EncodeHello(GoodHello())));
  ExpectFailure("without a header");
}

TEST_P(HostilePeerTest, Data_KindOutOfRange_FailsNamingPeer) {
  UcxConnection* connection = Enter();
  ASSERT_OK(enemy_->worker().SendData(*connection, {.kind = 4000000000}, Payload(10)));
  ExpectFailure("out of range");
}

TEST_P(HostilePeerTest, Data_LargerThanAllowed_FailsNamingPeer) {
  UcxConnection* connection = Enter();
  ASSERT_OK(enemy_->worker().SendData(*connection, {}, Payload(1000001)));
  ExpectFailure("1000001 bytes");
}

TEST_P(HostilePeerTest, Hangup_InTheMiddle_PeerIsLostOnly) {
  UcxConnection* connection = Enter();
  ASSERT_OK(enemy_->worker().SendData(*connection, {.kind = 3}, Payload(900000)));
  (void)enemy_->worker().Progress();
  enemy_.reset();
  const Clock::TimePoint late = Late();
  while (port_->failure().ok() && SystemClock().Now() < late) std::this_thread::yield();
  EXPECT_THAT(port_->failure(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1 (w1)")));
}

// Bytes that are not UCX's at all.
TEST_P(HostilePeerTest, Socket_RandomBytes_HonestPeerStillConnects) {
  Random random(TestSeed(5));
  const auto address = ParsePortAddress(port_->address());
  ASSERT_OK(address);
  const auto target = ParseSocketAddress(GetParam() ? address->remote : address->local);
  ASSERT_OK(target);
  for (int i = 0; i < 50; ++i) {
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_GE(connection, 0);
    ASSERT_EQ(
        connect(connection, reinterpret_cast<const sockaddr*>(&target->storage), target->length),
        0);
    Payload bytes(random.Between(0, 300));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
    (void)!send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    close(connection);
  }
  ExpectHealthy();
}

// More bytes than they say that they are would end the process, inside UCX.
TEST_P(HostilePeerTest, StopListening_StrangersAreRefused_PeersGoOn) {
  UcxConnection* connection = Enter();
  port_->StopListening();
  port_->StopListening();
  const auto address = ParsePortAddress(port_->address());
  ASSERT_OK(address);
  for (const std::string& text : {address->local, address->remote}) {
    if (text.empty()) continue;
    const auto target = ParseSocketAddress(text);
    ASSERT_OK(target);
    const int stranger = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(
        connect(stranger, reinterpret_cast<const sockaddr*>(&target->storage), target->length), -1)
        << text;
    close(stranger);
  }
  ASSERT_OK(enemy_->worker().SendData(*connection, {.kind = 3}, Payload(100)));
  (void)enemy_->worker().Progress();
  EXPECT_OK(port_->Receive({.peer = 1}, Late()));
  EXPECT_OK(port_->failure());
}

INSTANTIATE_TEST_SUITE_P(Ucx, HostilePeerTest, ::testing::Bool(),
                         [](const auto& chosen) { return chosen.param ? "tcp" : "memory"; });

}  // namespace
}  // namespace weft
