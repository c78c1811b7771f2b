#include "tests/support/wire_targets.h"

#include <algorithm>
#include <memory>
#include <set>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/membership.pb.h"
#include "proto/worker.pb.h"
#include "rpc_backend/protocol/graph_codec.h"
#include "rpc_backend/protocol/message_check.h"
#include "rpc_backend/protocol/program_codec.h"
#include "tests/support/program_for_test.h"
#include "tests/support/random_graph.h"
#include "tests/support/wire_samples.h"

namespace weft {
namespace {

using Seeds = std::vector<std::pair<std::string, std::string>>;

std::string TextOf(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
absl::Span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// --- Graphs and programs ---

absl::Status RunGraph(std::string_view bytes) {
  ASSIGN_OR_RETURN(const Graph graph, DecodeGraph(bytes));
  // Floats may be NaN, so bytes are compared instead of graphs.
  const std::string again = EncodeGraph(graph);
  const absl::StatusOr<Graph> twice = DecodeGraph(again);
  WEFT_CHECK(twice.ok() && EncodeGraph(*twice) == again);
  return VerifyGraph(graph);
}

Seeds GraphSeeds() {
  Seeds seeds = {{"every_op", EncodeGraph(SampleGraph())}};
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed);
    seeds.emplace_back("random_" + std::to_string(seed), EncodeGraph(MakeRandomGraph(random, 12)));
  }
  return seeds;
}

absl::Status RunProgram(std::string_view bytes) {
  ASSIGN_OR_RETURN(const Program program, DecodeProgram(bytes));
  const std::string again = EncodeProgram(program);
  const absl::StatusOr<Program> twice = DecodeProgram(again);
  WEFT_CHECK(twice.ok() && EncodeProgram(*twice) == again);
  return VerifyProgram(program);
}

Seeds ProgramSeeds() {
  Seeds seeds = {{"every_command", EncodeProgram(SampleProgram())}};
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed);
    const Graph graph = MakeRandomGraph(random, 6);
    std::vector<int32_t> devices;
    devices.reserve(static_cast<size_t>(graph.size()));
    for (int32_t i = 0; i < graph.size(); ++i) {
      devices.push_back(static_cast<int32_t>(random.Between(0, 1)));
    }
    const PlacedGraph placed = InsertCopies(graph, devices);
    seeds.emplace_back("random_" + std::to_string(seed),
                       EncodeProgram(CompileForTest(placed.graph, placed.devices, 2)));
  }
  return seeds;
}

// --- Steps ---

absl::Status RunStepRequest(std::string_view bytes) {
  StepRequest request;
  RETURN_IF_ERROR(DecodeStepRequest(BytesOf(bytes), WireLimits(), request));
  std::vector<uint8_t> again;
  EncodeStepRequest(request, again);
  StepRequest twice;
  WEFT_CHECK(DecodeStepRequest(again, WireLimits(), twice).ok());
  WEFT_CHECK(twice.input.inputs.size() == request.input.inputs.size());
  WEFT_CHECK(twice.input.table_updates.size() == request.input.table_updates.size());
  WEFT_CHECK(twice.input.page_copies.size() == request.input.page_copies.size());
  return absl::OkStatus();
}

Seeds StepRequestSeeds() {
  std::vector<uint8_t> bytes;
  const std::vector<std::vector<uint8_t>> inputs = {{1, 0, 0, 0}, {}, {7, 0, 0, 0, 8, 0, 0, 0}};
  EncodeStepRequest(SampleStepRequest(inputs), bytes);
  return {{"full", TextOf(bytes)}, {"empty", ""}};
}

absl::Status RunStepReply(std::string_view bytes) {
  StepReply reply;
  RETURN_IF_ERROR(DecodeStepReply(BytesOf(bytes), WireLimits(), reply));
  std::vector<uint8_t> again;
  EncodeStepReply(reply, again);
  StepReply twice;
  WEFT_CHECK(DecodeStepReply(again, WireLimits(), twice).ok());
  WEFT_CHECK(twice.status == reply.status);
  WEFT_CHECK(!reply.status.ok() || twice.output.outputs == reply.output.outputs);
  return absl::OkStatus();
}

Seeds StepReplySeeds() {
  std::vector<uint8_t> full;
  EncodeStepReply(SampleStepReply(), full);
  std::vector<uint8_t> failed;
  EncodeStepReply(SampleFailedStepReply(), failed);
  return {{"full", TextOf(full)}, {"failed", TextOf(failed)}};
}

// --- Manifests and digest files ---

absl::Status RunLoadManifest(std::string_view bytes) {
  ASSIGN_OR_RETURN(const LoadManifest manifest, DecodeLoadManifest(bytes, 2));
  const absl::StatusOr<LoadManifest> twice = DecodeLoadManifest(EncodeLoadManifest(manifest), 2);
  WEFT_CHECK(twice.ok() && *twice == manifest);
  return absl::OkStatus();
}

Seeds LoadManifestSeeds() { return {{"full", EncodeLoadManifest(SampleManifest())}}; }

absl::Status RunWeightDigests(std::string_view bytes) {
  ASSIGN_OR_RETURN(const WeightDigests digests, ParseWeightDigests(bytes, "fuzz.weft-digest"));
  // There is one way to write the same digests.
  WEFT_CHECK(WeightDigestsText(digests) == bytes);
  return absl::OkStatus();
}

Seeds WeightDigestsSeeds() { return {{"full", WeightDigestsText(SampleDigests())}}; }

// --- Control plane ---

template <typename Message>
absl::Status RunHello(std::string_view bytes) {
  Message message;
  RETURN_IF_ERROR(CheckMessageBytes(*Message::descriptor(), bytes));
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("no message");
  }
  ASSIGN_OR_RETURN(const auto hello, DecodeHello(message));
  CheckHello(OwnHello(), "worker", hello.protocol, "the other side").IgnoreError();
  return absl::OkStatus();
}

Seeds HelloRequestSeeds() {
  proto::HelloRequest message;
  EncodeHello(SampleCoordinatorHello(), message);
  return {{"full", message.SerializeAsString()}};
}

Seeds HelloReplySeeds() {
  proto::HelloReply message;
  EncodeHello(SampleWorkerHello(), message);
  return {{"full", message.SerializeAsString()}};
}

std::unique_ptr<google::protobuf::Message> NewMessage(const google::protobuf::Descriptor& type) {
  return std::unique_ptr<google::protobuf::Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->New());
}

absl::Status RunControlMessage(std::string_view bytes) {
  static const std::vector<const google::protobuf::Descriptor*> types = ControlMessages();
  if (bytes.empty()) return absl::InvalidArgumentError("no message");
  const auto& type = *types[static_cast<uint8_t>(bytes[0]) % types.size()];
  bytes.remove_prefix(1);
  RETURN_IF_ERROR(CheckMessageBytes(type, bytes));
  const std::unique_ptr<google::protobuf::Message> message = NewMessage(type);
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("no message");
  }
  RETURN_IF_ERROR(CheckMessage(*message));
  WEFT_CHECK(CheckMessageBytes(type, message->SerializeAsString()).ok());
  return absl::OkStatus();
}

Seeds ControlMessageSeeds() {
  Seeds seeds;
  const auto types = ControlMessages();
  for (size_t i = 0; i < types.size(); ++i) {
    const std::unique_ptr<google::protobuf::Message> message = NewMessage(*types[i]);
    FillMessage(*message);
    seeds.emplace_back(types[i]->name(),
                       std::string(1, static_cast<char>(i)) + message->SerializeAsString());
  }
  return seeds;
}

constexpr WireTarget kTargets[] = {
    {"wire_graph", RunGraph, GraphSeeds},
    {"wire_program", RunProgram, ProgramSeeds},
    {"wire_step_request", RunStepRequest, StepRequestSeeds},
    {"wire_step_reply", RunStepReply, StepReplySeeds},
    {"wire_load_manifest", RunLoadManifest, LoadManifestSeeds},
    {"wire_hello_request", RunHello<proto::HelloRequest>, HelloRequestSeeds},
    {"wire_hello_reply", RunHello<proto::HelloReply>, HelloReplySeeds},
    {"wire_control_message", RunControlMessage, ControlMessageSeeds},
    {"weight_digests", RunWeightDigests, WeightDigestsSeeds},
};

// A number at which arithmetic tends to break.
uint64_t EdgeNumber(Random& random) {
  const uint64_t power = uint64_t{1} << random.Between(0, 63);
  const uint64_t numbers[] = {power, power - 1, ~power, 0, 1, uint64_t{0} - 1};
  return numbers[random.Between(0, std::size(numbers) - 1)];
}

std::string VarintOf(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

}  // namespace

absl::Span<const WireTarget> WireTargets() { return kTargets; }

const WireTarget& FindWireTarget(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTargets), std::end(kTargets),
                                   [&](const WireTarget& target) { return target.name == name; });
  WEFT_CHECK(found != std::end(kTargets));
  return *found;
}

std::vector<const google::protobuf::Descriptor*> ControlMessages() {
  std::vector<const google::protobuf::Descriptor*> messages;
  std::set<const google::protobuf::Descriptor*> seen;
  const auto collect = [&](const google::protobuf::ServiceDescriptor& service) {
    for (int m = 0; m < service.method_count(); ++m) {
      const google::protobuf::MethodDescriptor& method = *service.method(m);
      for (const auto* type : {method.input_type(), method.output_type()}) {
        if (seen.insert(type).second) messages.push_back(type);
      }
    }
  };
  for (const auto* file :
       {proto::HelloRequest::descriptor()->file(), proto::JoinRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) collect(*file->service(s));
  }
  return messages;
}

void Damage(Random& random, std::string_view other, std::string& bytes) {
  const size_t at = random.Between(0, static_cast<int64_t>(bytes.size()));
  const size_t length = random.Between(0, 24);
  const std::string number = VarintOf(EdgeNumber(random));
  switch (random.Between(0, 6)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Between(0, 7)));
      break;
    case 1:
      bytes.replace(at, std::min<size_t>(1, bytes.size() - at), number);
      break;
    case 2:
      bytes.replace(at, std::min(number.size(), bytes.size() - at), number);
      break;
    case 3:
      bytes.erase(at, length);
      break;
    case 4:
      bytes.insert(at, bytes.substr(random.Between(0, static_cast<int64_t>(bytes.size())), length));
      break;
    case 5:
      if (at < bytes.size()) bytes[at] = static_cast<char>(random.Between(0, 255));
      break;
    default:
      bytes = bytes.substr(0, at).append(other.substr(std::min(at, other.size())));
      break;
  }
}

}  // namespace weft
