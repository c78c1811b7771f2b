#include "rpc_backend/protocol/step_codec.h"

#include "proto/step.pb.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wire_samples.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
constexpr auto kBad = absl::StatusCode::kInvalidArgument;

const std::vector<std::vector<uint8_t>>& Inputs() {
  static const std::vector<std::vector<uint8_t>> inputs = {
      {1, 0, 0, 0}, {}, {7, 0, 0, 0, 8, 0, 0, 0}};
  return inputs;
}

std::string TextOf(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
std::vector<uint8_t> BytesOf(const std::string& text) { return {text.begin(), text.end()}; }

std::vector<uint8_t> Encoded(const StepRequest& request) {
  std::vector<uint8_t> bytes;
  EncodeStepRequest(request, bytes);
  return bytes;
}
std::vector<uint8_t> Encoded(const StepReply& reply) {
  std::vector<uint8_t> bytes;
  EncodeStepReply(reply, bytes);
  return bytes;
}

void CheckRefused(const proto::StepRequest& message, const std::string& why,
                  const WireLimits& limits = {}) {
  StepRequest request;
  EXPECT_THAT(DecodeStepRequest(BytesOf(message.SerializeAsString()), limits, request),
              StatusIs(kBad, HasSubstr(why)));
}

void CheckRefused(const proto::StepReply& message, const std::string& why,
                  const WireLimits& limits = {}) {
  StepReply reply;
  EXPECT_THAT(DecodeStepReply(BytesOf(message.SerializeAsString()), limits, reply),
              StatusIs(kBad, HasSubstr(why)));
}

// Written by hand, the bytes are those of protobuf's own code.
TEST(StepCodec, Request_IsWhatGeneratedCodeReadsAndWrites) {
  const StepRequest request = SampleStepRequest(Inputs());
  const std::string bytes = TextOf(Encoded(request));
  proto::StepRequest message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  EXPECT_EQ(message.instance(), 5);
  EXPECT_EQ(message.edge_step(), 1000);
  EXPECT_EQ(message.deadline_ms(), 2500);
  ASSERT_EQ(message.inputs_size(), 3);
  EXPECT_EQ(message.inputs(2), TextOf(Inputs()[2]));
  ASSERT_EQ(message.table_updates_size(), 3);
  EXPECT_EQ(message.table_updates(1).table(), 3);
  EXPECT_EQ(message.table_updates(1).entry(), 4000);
  EXPECT_EQ(message.table_updates(1).page(), 5);
  ASSERT_EQ(message.page_copies_size(), 1);
  EXPECT_EQ(message.page_copies(0).cache(), 1);
  EXPECT_EQ(message.page_copies(0).from(), 2);
  EXPECT_EQ(message.page_copies(0).to(), 3);
  EXPECT_EQ(message.page_copies(0).page_bytes(), 65536);
  EXPECT_EQ(message.SerializeAsString(), bytes);
  EXPECT_EQ(proto::StepRequest::descriptor()->field_count(), 6) << "a field without a codec";
}

TEST(StepCodec, Reply_IsWhatGeneratedCodeReadsAndWrites) {
  const std::string bytes = TextOf(Encoded(SampleStepReply()));
  proto::StepReply message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  ASSERT_EQ(message.outputs_size(), 3);
  EXPECT_EQ(message.outputs(0), "\x01\x02\x03\x04");
  EXPECT_EQ(message.compute_seconds(), 0.25);
  EXPECT_EQ(message.wait_seconds(), 0.125);
  EXPECT_EQ(message.wire_seconds(), 0.0625);
  EXPECT_EQ(message.hand_off_seconds(), 0.03125);
  EXPECT_EQ(message.SerializeAsString(), bytes);

  const std::string failed = TextOf(Encoded(SampleFailedStepReply()));
  ASSERT_TRUE(message.ParseFromString(failed));
  EXPECT_EQ(message.code(), 10u);
  EXPECT_EQ(message.message(), "the epoch moved");
  EXPECT_EQ(message.SerializeAsString(), failed);
  EXPECT_EQ(proto::StepReply::descriptor()->field_count(), 7) << "a field without a codec";
}

TEST(StepCodec, Request_ComesBackWithInputsInsideTheMessage) {
  const std::vector<uint8_t> bytes = Encoded(SampleStepRequest(Inputs()));
  StepRequest request;
  request.input.step = 77;
  ASSERT_OK(DecodeStepRequest(bytes, WireLimits(), request));
  EXPECT_EQ(request.instance, InstanceId{5});
  EXPECT_EQ(request.input.edge_step, 1000);
  EXPECT_EQ(request.deadline_ms, 2500);
  EXPECT_EQ(request.input.step, 77) << "the header's";
  ASSERT_EQ(request.input.inputs.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const absl::Span<const uint8_t> input = request.input.inputs[i];
    EXPECT_EQ(std::vector<uint8_t>(input.begin(), input.end()), Inputs()[i]);
  }
  EXPECT_GE(request.input.inputs[2].data(), bytes.data());
  EXPECT_LT(request.input.inputs[2].data(), bytes.data() + bytes.size());
  ASSERT_EQ(request.input.table_updates.size(), 3u);
  EXPECT_EQ(request.input.table_updates[1].entry, 4000);
  ASSERT_EQ(request.input.page_copies.size(), 1u);
  EXPECT_EQ(request.input.page_copies[0].page_bytes, 65536);
  EXPECT_EQ(Encoded(request), bytes);
}

TEST(StepCodec, ReusedObjects_KeepNothingOfTheStepBefore) {
  StepRequest request;
  ASSERT_OK(DecodeStepRequest(Encoded(SampleStepRequest(Inputs())), WireLimits(), request));
  ASSERT_OK(DecodeStepRequest({}, WireLimits(), request));
  EXPECT_EQ(request.instance, InstanceId{0});
  EXPECT_EQ(request.input.edge_step, 0);
  EXPECT_EQ(request.deadline_ms, 0);
  EXPECT_TRUE(request.input.inputs.empty());
  EXPECT_TRUE(request.input.table_updates.empty());
  EXPECT_TRUE(request.input.page_copies.empty());

  StepReply reply = SampleStepReply();
  const uint8_t* const memory = reply.output.outputs[0].data();
  ASSERT_OK(DecodeStepReply(Encoded(SampleStepReply()), WireLimits(), reply));
  EXPECT_EQ(reply.output.outputs, SampleStepReply().output.outputs);
  EXPECT_EQ(reply.output.outputs[0].data(), memory) << "memory is used again";
  ASSERT_OK(DecodeStepReply(Encoded(SampleFailedStepReply()), WireLimits(), reply));
  EXPECT_EQ(reply.status, SampleFailedStepReply().status);
  EXPECT_TRUE(reply.output.outputs.empty());
  ASSERT_OK(DecodeStepReply({}, WireLimits(), reply));
  EXPECT_OK(reply.status);
}

TEST(StepCodec, LargeInputsAndOutputs_AreSentFromWhereTheyLie) {
  const std::vector<std::vector<uint8_t>> inputs = {
      std::vector<uint8_t>(2000, 1), {1, 2}, std::vector<uint8_t>(3000, 2)};
  const StepRequest request = SampleStepRequest(inputs);
  StepMessage message;
  for (int round = 0; round < 2; ++round) {
    message.Encode(request);
    ASSERT_EQ(message.parts().size(), 5u);
    EXPECT_EQ(message.parts()[1].data(), inputs[0].data());
    EXPECT_EQ(message.parts()[3].data(), inputs[2].data());
    std::vector<uint8_t> joined;
    for (const auto part : message.parts()) joined.insert(joined.end(), part.begin(), part.end());
    EXPECT_EQ(joined, Encoded(request));
  }
  StepReply reply = SampleStepReply();
  reply.output.wait_seconds = 0;
  reply.output.compute_seconds = 0;
  reply.output.wire_seconds = 0;
  reply.output.hand_off_seconds = 0;
  reply.output.outputs = {std::vector<uint8_t>(2000, 1)};
  message.Encode(reply);
  ASSERT_EQ(message.parts().size(), 2u);
  EXPECT_EQ(message.parts()[1].data(), reply.output.outputs[0].data());
  message.Encode(StepReply());
  ASSERT_EQ(message.parts().size(), 1u);
  EXPECT_TRUE(message.parts()[0].empty());
}

TEST(StepCodec, FieldsOfANewerVersion_AreSkipped) {
  std::vector<uint8_t> bytes = Encoded(SampleStepRequest(Inputs()));
  const std::string extra = "\xD2\x02\x03new";  // field 42
  bytes.insert(bytes.end(), extra.begin(), extra.end());
  StepRequest request;
  EXPECT_OK(DecodeStepRequest(bytes, WireLimits(), request));
  EXPECT_EQ(request.input.inputs.size(), 3u);
}

TEST(StepCodec, WrongRequests_AreRefusedByField) {
  proto::StepRequest message;
  message.set_instance(-1);
  CheckRefused(message, "step request: field 'instance' = -1");
  message = {};
  message.set_edge_step(-2);
  CheckRefused(message, "field 'edge_step' = -2");
  message = {};
  message.set_deadline_ms(-1);
  CheckRefused(message, "field 'deadline_ms' = -1");
  message = {};
  message.add_table_updates()->set_entry(-1);
  CheckRefused(message, "field 'table_updates' = -1");
  message = {};
  message.add_page_copies()->set_page_bytes(-1);
  CheckRefused(message, "field 'page_copies' = -1");

  StepRequest request;
  EXPECT_THAT(DecodeStepRequest(BytesOf("\x0A\x01x"), WireLimits(), request),
              StatusIs(kBad, HasSubstr("'instance' has another type")));
  EXPECT_THAT(DecodeStepRequest(BytesOf("\x18\x01"), WireLimits(), request),
              StatusIs(kBad, HasSubstr("'inputs' has another type")));
  EXPECT_THAT(DecodeStepRequest(BytesOf("\x22\x02\x08"), WireLimits(), request),
              StatusIs(kBad, HasSubstr("cut off")));
  EXPECT_THAT(DecodeStepRequest(BytesOf("\x22\x01\x08"), WireLimits(), request),
              StatusIs(kBad, HasSubstr("'table_updates' is cut off")));
}

TEST(StepCodec, RequestsBeyondTheLimits_AreRefusedByField) {
  WireLimits limits;
  limits.program.step_input_bytes = 10;
  limits.program.table_updates = 2;
  limits.program.page_copies = 1;
  limits.program.slots = 3;
  proto::StepRequest message;
  message.add_inputs("12345");
  message.add_inputs("123456");
  CheckRefused(message, "field 'inputs' = (11 bytes): at most 10", limits);
  message = {};
  for (int i = 0; i < 4; ++i) message.add_inputs("");
  CheckRefused(message, "'inputs' = (list): more than 3", limits);
  message = {};
  for (int i = 0; i < 3; ++i) message.add_table_updates();
  CheckRefused(message, "'table_updates' = (list): more than 2", limits);
  message = {};
  for (int i = 0; i < 2; ++i) message.add_page_copies();
  CheckRefused(message, "'page_copies' = (list): more than 1", limits);
}

TEST(StepCodec, WrongReplies_AreRefusedByField) {
  proto::StepReply message;
  message.set_compute_seconds(-1);
  CheckRefused(message, "step reply: field 'compute_seconds' = -1");
  message = {};
  message.set_wait_seconds(std::numeric_limits<double>::infinity());
  CheckRefused(message, "field 'wait_seconds' = inf");
  WireLimits limits;
  limits.program.step_output_bytes = 10;
  limits.program.outputs = 2;
  message = {};
  message.add_outputs("01234567890");
  CheckRefused(message, "field 'outputs' = (11 bytes)", limits);
  message = {};
  for (int i = 0; i < 3; ++i) message.add_outputs("");
  CheckRefused(message, "'outputs' = (list): more than 2", limits);
}

TEST(StepCodec, UnknownCode_IsUnknown) {
  proto::StepReply message;
  message.set_code(99);
  message.set_message("x\ny");
  StepReply reply;
  ASSERT_OK(DecodeStepReply(BytesOf(message.SerializeAsString()), WireLimits(), reply));
  EXPECT_THAT(reply.status, StatusIs(absl::StatusCode::kUnknown, "x\\ny"));
}

}  // namespace
}  // namespace weft
