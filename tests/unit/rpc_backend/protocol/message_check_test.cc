#include "rpc_backend/protocol/message_check.h"

#include "google/protobuf/message.h"
#include "proto/program.pb.h"
#include "proto/weights.pb.h"
#include "proto/worker.pb.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wire_samples.h"
#include "tests/support/wire_targets.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
constexpr auto kBad = absl::StatusCode::kInvalidArgument;

void CheckRefused(const google::protobuf::Message& message, const std::string& why) {
  EXPECT_THAT(CheckMessage(message), StatusIs(kBad, HasSubstr(why)));
}

TEST(MessageCheck, EveryMessageOfTheServices_HasRulesForAllFields) {
  EXPECT_GT(ControlMessages().size(), 30u);
  for (const google::protobuf::Descriptor* type : ControlMessages()) {
    EXPECT_EQ(MissingMessageRules(*type), "");
  }
  EXPECT_EQ(MissingMessageRules(*proto::Graph::descriptor()), "");
  EXPECT_EQ(MissingMessageRules(*proto::Program::descriptor()), "");
  EXPECT_EQ(MissingMessageRules(*proto::LoadManifest::descriptor()), "");
}

TEST(MessageCheck, FilledMessages_Pass) {
  for (const google::protobuf::Descriptor* type : ControlMessages()) {
    const std::unique_ptr<google::protobuf::Message> message(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
    FillMessage(*message);
    EXPECT_OK(CheckMessage(*message));
    EXPECT_OK(CheckMessageBytes(*type, message->SerializeAsString()));
  }
}

TEST(MessageCheck, WrongValues_AreNamedWithTheirPath) {
  proto::ConnectPeersRequest connect;
  for (int i = 0; i < 4; ++i) connect.add_peers()->set_token("0123456789abcdef");
  EXPECT_OK(CheckMessage(connect));
  connect.mutable_peers(3)->set_token("0123456789abcde");
  CheckRefused(connect, "ConnectPeersRequest.peers[3].token: 15 bytes, want 16");
  connect.mutable_peers(3)->clear_token();
  CheckRefused(connect, "ConnectPeersRequest.peers[3].token: 0 bytes, want 16");
  connect.mutable_peers(1)->set_name("\x1B[2J");
  CheckRefused(connect, "ConnectPeersRequest.peers[1].name: '\\x1b[2J' is not a line");

  proto::AllocateBufferRequest allocate;
  allocate.set_bytes(-1);
  CheckRefused(allocate, "AllocateBufferRequest.bytes: -1, want 0 to ");
  allocate.set_bytes(0);
  allocate.set_usage(3);
  CheckRefused(allocate, "AllocateBufferRequest.usage: 3, want 0 to 2");

  proto::LoadWeightsReply loaded;
  loaded.add_weights()->set_source(static_cast<proto::WeightSource>(9));
  CheckRefused(loaded, "LoadWeightsReply.weights[0].source: no such WeightSource: 9");

  proto::MeasureLinkReply measured;
  measured.set_latency_us(std::numeric_limits<double>::quiet_NaN());
  CheckRefused(measured, "MeasureLinkReply.latency_us: nan, want");

  proto::WriteBufferRequest write;
  write.set_data(std::string((16 << 20) + 1, 'x'));
  CheckRefused(write, "WriteBufferRequest.data: 16777217 bytes, want 0 to 16777216");
}

TEST(MessageCheck, LongLists_AreRefusedParsedOrNot) {
  WireLimits limits;
  limits.bindings = 3;
  proto::InstantiateRequest request;
  for (int i = 0; i < 4; ++i) request.add_bindings();
  EXPECT_THAT(CheckMessage(request, limits),
              StatusIs(kBad, HasSubstr("InstantiateRequest.bindings: 4 entries, at most 3")));
  EXPECT_THAT(CheckMessageBytes(*request.GetDescriptor(), request.SerializeAsString(), limits),
              StatusIs(kBad, HasSubstr("InstantiateRequest.bindings: more than 3 entries")));
  limits.program.nodes = 3;
  proto::QuerySupportRequest query;
  for (int i = 0; i < 4; ++i) query.add_nodes(300);  // two bytes each, packed
  EXPECT_THAT(CheckMessageBytes(*query.GetDescriptor(), query.SerializeAsString(), limits),
              StatusIs(kBad, HasSubstr("QuerySupportRequest.nodes: more than 3 entries")));
  query.mutable_nodes()->RemoveLast();
  EXPECT_OK(CheckMessageBytes(*query.GetDescriptor(), query.SerializeAsString(), limits));
}

TEST(MessageCheck, BytesThatAreNoMessage_AreRefused) {
  const auto& type = *proto::ConnectPeersRequest::descriptor();
  EXPECT_THAT(CheckMessageBytes(type, "\x1A\x05x"), StatusIs(kBad, HasSubstr("cut off")));
  EXPECT_THAT(CheckMessageBytes(type, "\x18\x01"), StatusIs(kBad, HasSubstr("is no message")));
  EXPECT_THAT(CheckMessageBytes(type, std::string_view("\x1A\x02\x12\x09", 4)),
              StatusIs(kBad, HasSubstr("Peer: is cut off")));
  EXPECT_THAT(CheckMessageBytes(type, "\x1A\x03\x12\x01\xFF"),
              StatusIs(kBad, HasSubstr("Peer.name: is no UTF-8")));
  EXPECT_OK(CheckMessageBytes(type, "\xD2\x02\x03new"));  // field 42 of a newer version
}

}  // namespace
}  // namespace weft
