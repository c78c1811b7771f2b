#include "rpc_backend/protocol/hello_codec.h"

#include "proto/worker.pb.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wire_samples.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
constexpr auto kBad = absl::StatusCode::kInvalidArgument;

proto::HelloReply SampleReply() {
  proto::HelloReply message;
  EncodeHello(SampleWorkerHello(), message);
  return message;
}

TEST(HelloCodec, Request_ComesBackEqual) {
  proto::HelloRequest message;
  EncodeHello(SampleCoordinatorHello(), message);
  ASSERT_OK_AND_ASSIGN(const CoordinatorHello decoded, DecodeHello(message));
  EXPECT_EQ(decoded, SampleCoordinatorHello());
}

TEST(HelloCodec, Reply_ComesBackEqual) {
  const proto::HelloReply message = SampleReply();
  ASSERT_OK_AND_ASSIGN(const WorkerHello decoded, DecodeHello(message));
  EXPECT_EQ(decoded.protocol, SampleWorkerHello().protocol);
  ASSERT_EQ(decoded.devices.size(), 2u);
  EXPECT_EQ(decoded.devices[0].kind, DeviceKind::kGpu);
  EXPECT_EQ(decoded.devices[0].preferred_batch, (BatchRange{2, 512}));
  EXPECT_EQ(decoded.devices[1].preferred_batch, BatchRange());
  // All fields: encoding what was decoded gives the same message, and the sample sets every field.
  proto::HelloReply again;
  EncodeHello(decoded, again);
  EXPECT_EQ(again.SerializeAsString(), message.SerializeAsString());
  for (const google::protobuf::Message* sample :
       std::initializer_list<const google::protobuf::Message*>{&message, &message.devices(0)}) {
    std::vector<const google::protobuf::FieldDescriptor*> set;
    sample->GetReflection()->ListFields(*sample, &set);
    EXPECT_EQ(static_cast<int>(set.size()), sample->GetDescriptor()->field_count());
  }
}

TEST(HelloCodec, AnotherMajorVersion_IsAllThatIsLookedAt) {
  proto::HelloReply message;
  message.mutable_version()->set_major(kProtocolMajor + 1);
  message.mutable_version()->set_release("9");
  ASSERT_OK_AND_ASSIGN(const WorkerHello decoded, DecodeHello(message));
  EXPECT_EQ(decoded.protocol.major, kProtocolMajor + 1);
  EXPECT_TRUE(decoded.devices.empty());
  proto::HelloRequest request;
  ASSERT_OK_AND_ASSIGN(const CoordinatorHello empty, DecodeHello(request));
  EXPECT_EQ(empty.protocol.major, 0u);
}

TEST(HelloCodec, WrongReplies_AreRefusedByField) {
  const auto check = [](void (*change)(proto::HelloReply&), const std::string& why) {
    proto::HelloReply message = SampleReply();
    change(message);
    EXPECT_THAT(DecodeHello(message), StatusIs(kBad, HasSubstr(why)));
  };
  check([](auto& m) { m.set_incarnation("short"); }, "HelloReply.incarnation: 5 bytes, want 16");
  check([](auto& m) { m.set_op_set("short"); }, "HelloReply.op_set: 5 bytes, want 32");
  check([](auto& m) { m.set_name("a\nb"); }, "HelloReply.name: 'a\\nb' is not");
  check([](auto& m) { m.mutable_devices(1)->set_kind("tpu"); }, "hello: device 1: field 'kind'");
  check([](auto& m) { m.mutable_devices(1)->set_alignment(48); }, "device 1: field 'alignment'");
  check([](auto& m) { m.mutable_devices(0)->set_reads(0, 2); }, "device 0: field 'reads' = 2");
  check([](auto& m) { m.mutable_devices(0)->set_memory_free(-1); },
        "HelloReply.devices[0].memory_free: -1");
  check(
      [](auto& m) {
        for (int i = 0; i < 64; ++i) m.add_devices();
      },
      "HelloReply.devices: 66");
}

}  // namespace
}  // namespace weft
