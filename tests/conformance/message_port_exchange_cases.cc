// Connecting, sending and finding messages by key.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "tests/conformance/message_port_suite.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_seed.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST_P(MessagePortSuite, Connect_Expected_BothSidesUsable) {
  const auto ports = NewPorts(2);
  for (int32_t from = 0; from < 2; ++from) {
    ASSERT_OK(SendBytes(*ports[from], 1 - from, Header(1, 2, 3), PatternPayload(from, 100)));
    ASSERT_OK_AND_ASSIGN(const Message message, ports[1 - from]->Receive({}, Late()));
    EXPECT_EQ(message.peer, from);
    EXPECT_EQ(message.header, Header(1, 2, 3));
    EXPECT_EQ(message.payload, PatternPayload(from, 100));
  }
  for (const auto& port : ports) {
    ASSERT_EQ(port->traffic().size(), 1u);
    EXPECT_EQ(port->traffic()[0].transport, GetParam().transport);
    EXPECT_EQ(port->traffic()[0].kinds[1].bytes_sent, 100);
    EXPECT_EQ(port->traffic()[0].kinds[1].bytes_received, 100);
    EXPECT_FALSE(port->traffic()[0].lost);
    EXPECT_OK(port->failure());
  }
}

TEST_P(MessagePortSuite, Connect_WrongToken_RefusedAndRightOneStillWelcome) {
  const auto a = NewPort(Options(0));
  const auto b = NewPort(Options(1));
  ASSERT_OK(b->Expect(Peer(0)));
  const ScopedDriver driver(*b);
  PortPeer wrong = Peer(1);
  wrong.token[15] ^= 1;
  EXPECT_THAT(a->Connect(wrong, b->address(), Late()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1 (w1)")));
  EXPECT_OK(a->Connect(Peer(1), b->address(), Late()));
  EXPECT_OK(b->AwaitPeers(Late()));
  EXPECT_OK(b->failure());
}

TEST_P(MessagePortSuite, Connect_OtherSessionKey_RefusedAndRightOneStillWelcome) {
  PortOptions with_key = Options(1);
  ASSERT_OK_AND_ASSIGN(with_key.key, SessionKey::New());
  const auto b = NewPort(with_key);
  ASSERT_OK(b->Expect(Peer(0)));
  const ScopedDriver driver(*b);
  PortOptions other = Options(0);
  for (int i = 0; i < 2; ++i) {
    const auto stranger = NewPort(other);
    EXPECT_THAT(stranger->Connect(Peer(1), b->address(), Late()),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1 (w1)")));
    EXPECT_OK(stranger->failure());
    ASSERT_OK_AND_ASSIGN(other.key, SessionKey::New());
  }
  EXPECT_FALSE(b->AwaitPeers(Soon()).ok());
  other.key = with_key.key;
  const auto a = NewPort(other);
  EXPECT_OK(a->Connect(Peer(1), b->address(), Late()));
  EXPECT_OK(b->AwaitPeers(Late()));
  EXPECT_OK(b->failure());
}

TEST_P(MessagePortSuite, Connect_NotExpected_Refused) {
  const auto b = NewPort(Options(1));
  ASSERT_OK(b->Expect(Peer(0)));
  const ScopedDriver driver(*b);

  const auto stranger = NewPort(Options(7));
  EXPECT_THAT(stranger->Connect(Peer(1), b->address(), Late()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1")));

  PortOptions other_session = Options(0);
  other_session.session ^= 1;
  const auto foreigner = NewPort(other_session);
  EXPECT_THAT(foreigner->Connect(Peer(1), b->address(), Late()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1")));

  const auto mistaken = NewPort(Options(0));
  EXPECT_THAT(mistaken->Connect(Peer(2), b->address(), Late()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 2")));
  EXPECT_OK(mistaken->Connect(Peer(1), b->address(), Late()));
  EXPECT_OK(b->failure());

  const auto second = NewPort(Options(0));
  EXPECT_THAT(second->Connect(Peer(1), b->address(), Late()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1")));
  ASSERT_OK(SendBytes(*mistaken, 1, Header(0, 0, 0), PatternPayload(1, 10)));
}

TEST_P(MessagePortSuite, Connect_PortIsGone_Unavailable) {
  const auto a = NewPort(Options(0));
  auto b = NewPort(Options(1));
  const std::string address = b->address();
  b.reset();
  EXPECT_THAT(a->Connect(Peer(1), address, Late()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 1 (w1)")));
  EXPECT_OK(a->failure());
}

TEST_P(MessagePortSuite, Connect_NonsenseAddress_Error) {
  const auto a = NewPort(Options(0));
  const std::string good = a->address();
  std::vector<std::string> addresses = {"", "x", "loopback:", "::::", "=", std::string(5000, 'a')};
  for (size_t length = 0; length < good.size(); length += 3) {
    addresses.push_back(good.substr(0, length));
    addresses.push_back(good.substr(0, length) + "\xff" + good.substr(length));
  }
  for (const std::string& address : addresses) {
    EXPECT_FALSE(a->Connect(Peer(1), address, Soon()).ok()) << address;
  }
  EXPECT_OK(a->failure());
}

TEST_P(MessagePortSuite, Connect_NobodyDrivesOtherSide_AwaitPeersDoes) {
  const auto a = NewPort(Options(0));
  const auto b = NewPort(Options(1));
  ASSERT_OK(b->Expect(Peer(0)));
  absl::Status connected;
  {
    const ScopedThread connect([&] { connected = a->Connect(Peer(1), b->address(), Late()); });
    EXPECT_OK(b->AwaitPeers(Late()));
    const ScopedDriver driver(*b);
  }
  EXPECT_OK(connected);
}

TEST_P(MessagePortSuite, AwaitPeers_Missing_DeadlineNamesIt) {
  const auto b = NewPort(Options(1));
  EXPECT_OK(b->AwaitPeers(Soon()));
  ASSERT_OK(b->Expect(Peer(4)));
  EXPECT_THAT(b->AwaitPeers(Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("peer 4 (w4)")));
}

TEST_P(MessagePortSuite, Expect_BadPeers_Refused) {
  const auto a = NewPort(Options(0));
  EXPECT_THAT(a->Expect(Peer(0)), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("w0")));
  EXPECT_THAT(a->Expect(Peer(-1)), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("w-1")));
  EXPECT_OK(a->Expect(Peer(1)));
  EXPECT_THAT(a->Expect(Peer(1)), StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("w1")));
}

TEST_P(MessagePortSuite, Send_AnySize_ArrivesIntact) {
  const auto ports = NewPorts(2);
  const ScopedDriver driver(*ports[0]);
  int32_t id = 0;
  for (const int64_t bytes :
       {0, 1, 7, 64, 4095, 8192, 16383, 16384, 16385, 65536, 1000003, 20000001}) {
    const Payload sent = PatternPayload(bytes, bytes);
    const ScopedThread sender([&] {
      const absl::Span<const uint8_t> all = sent;
      const std::vector<absl::Span<const uint8_t>> parts = {
          all.subspan(0, bytes / 3), {}, all.subspan(bytes / 3)};
      EXPECT_OK(ports[0]->Send(1, Header(2, 0, id), parts));
    });
    absl::StatusOr<Message> message = ports[1]->Receive({.peer = 0, .id = id}, Late());
    ASSERT_OK(message);
    EXPECT_TRUE(message->payload == sent) << bytes << " bytes";
    ++id;
  }
}

TEST_P(MessagePortSuite, Receive_AnyOrder_FindsByKey) {
  const auto ports = NewPorts(2);
  const ScopedDriver driver(*ports[0]);
  const uint64_t seed = TestSeed(11);
  Random random(seed);
  std::vector<MessageHeader> headers;
  for (uint32_t kind = 0; kind < 4; ++kind) {
    for (int64_t step = 0; step < 4; ++step) {
      for (int32_t id = 0; id < 4; ++id) headers.push_back(Header(kind, step, id));
    }
  }
  const auto shuffle = [&] {
    for (size_t i = headers.size(); i > 1; --i) {
      std::swap(headers[i - 1], headers[random.Between(0, static_cast<int64_t>(i) - 1)]);
    }
  };
  const auto payload_seed = [](const MessageHeader& header) {
    return header.kind * 100 + header.step * 10 + header.id;
  };
  shuffle();
  for (const MessageHeader& header : headers) {
    const int64_t bytes = random.Between(0, 3) == 0 ? random.Between(16000, 100000) : 50;
    ASSERT_OK(SendBytes(*ports[0], 1, header, PatternPayload(payload_seed(header), bytes)));
  }
  shuffle();
  for (const MessageHeader& header : headers) {
    const MessageFilter filter{
        .kinds = KindBit(header.kind), .peer = 0, .step = header.step, .id = header.id};
    ASSERT_OK_AND_ASSIGN(const Message message, ports[1]->Receive(filter, Late()));
    EXPECT_EQ(message.header, header);
    EXPECT_TRUE(message.payload == PatternPayload(payload_seed(header), message.payload.size()));
  }
}

TEST_P(MessagePortSuite, Receive_TwoReaders_EachGetsItsOwn) {
  const auto ports = NewPorts(2);
  const ScopedDriver driver(*ports[0]);
  constexpr int kMessages = 200;
  const auto read = [&](uint32_t kind) {
    for (int64_t step = 0; step < kMessages; ++step) {
      const auto message = ports[1]->Receive({.kinds = KindBit(kind), .step = step}, Late());
      ASSERT_OK(message);
      EXPECT_EQ(message->header.kind, kind);
    }
  };
  const ScopedThread first([&] { read(0); });
  const ScopedThread second([&] { read(1); });
  for (int64_t step = 0; step < kMessages; ++step) {
    for (uint32_t kind = 0; kind < 2; ++kind) {
      ASSERT_OK(SendBytes(*ports[0], 1, Header(kind, step, 0), PatternPayload(step, step * 200)));
    }
  }
}

TEST_P(MessagePortSuite, Send_BadArguments_Refused) {
  PortLimits limits;
  limits.max_message_bytes = 1000;
  const auto ports = NewPorts(2, limits);
  MessagePort& port = *ports[0];
  const Payload payload = PatternPayload(0, 10);
  const auto refused = [&](int32_t peer, const MessageHeader& header, const std::string& words) {
    EXPECT_THAT(SendBytes(port, peer, header, payload),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)));
  };
  refused(2, Header(0, 0, 0), "peer 2");
  refused(0, Header(0, 0, 0), "peer 0");
  refused(1, Header(kMessageKinds, 0, 0), "kind 32");
  refused(1, Header(0, -1, 0), "step -1");
  refused(1, {.epoch = kTestEpoch + 1}, "epoch 4");
  EXPECT_THAT(SendBytes(port, 1, Header(0, 0, 0), PatternPayload(0, 1001)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1001 bytes")));
  EXPECT_THAT(port.Receive({.peer = 5}, Late()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("peer 5")));
  ASSERT_OK(port.Expect(Peer(6)));
  refused(6, Header(0, 0, 0), "not connected");
  EXPECT_OK(port.failure());
}

TEST_P(MessagePortSuite, Progress_OnlyCaller_MovesMessages) {
  const auto ports = NewPorts(2);
  const Payload sent = PatternPayload(5, 300000);
  ASSERT_OK(SendBytes(*ports[0], 1, Header(0, 0, 0), sent));
  ASSERT_OK(SendBytes(*ports[0], 1, Header(1, 0, 0), PatternPayload(6, 10)));
  // The sender helps from a thread of its own, as a device does between chunks of work.
  std::atomic<bool> done = false;
  const ScopedThread helper([&] {
    while (!done) {
      ports[0]->Progress();
      std::this_thread::yield();
    }
  });
  const auto message = ports[1]->Receive({.kinds = KindBit(0)}, Late());
  done = true;
  ASSERT_OK(message);
  EXPECT_TRUE(message->payload == sent);
}

}  // namespace
}  // namespace weft
