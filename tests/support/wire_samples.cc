#include "tests/support/wire_samples.h"

#include <array>

#include "common/base/check.h"
#include "rpc_backend/protocol/version.h"

namespace weft {
namespace {

Sha256Digest DigestOf(uint8_t first) {
  Sha256Digest digest;
  for (size_t i = 0; i < digest.bytes.size(); ++i)
    digest.bytes[i] = static_cast<uint8_t>(first + i);
  return digest;
}

ProtocolHello SampleProtocol() {
  return {kProtocolMajor, 7, "0.1.2", DigestOf(3), {"first", "second"}};
}

RopeAttributes SampleRope() {
  RopeAttributes rope;
  rope.kind = RopeKind::kInterleaved;
  rope.dimensions = 64;
  rope.base = 500000;
  rope.frequency_scale = 0.5f;
  rope.extrapolation = 0.25f;
  rope.attention_factor = 1.5f;
  rope.beta_fast = 16;
  rope.beta_slow = 2;
  rope.original_context = 8192;
  rope.sections = {1, 2, 3, 4};
  return rope;
}

PagedAttentionAttributes SampleAttention() {
  PagedAttentionAttributes attention;
  attention.scale = 0.125f;
  attention.softcap = 30;
  attention.window_kind = WindowKind::kChunked;
  attention.window = 4096;
  attention.value_dimensions = 512;
  attention.has_sinks = true;
  attention.has_slopes = true;
  attention.heads_per_kv = 6;
  attention.head_offset = 5;
  return attention;
}

WorkerDevice SampleDevice() {
  WorkerDevice device;
  device.kind = DeviceKind::kGpu;
  device.description = "a device, for people";
  device.arithmetic = "how it rounds";
  device.memory = {1 << 20, 1 << 30};
  device.capabilities = {true, true, true, true};
  device.buffer_type = "gpu memory";
  device.alignment = 256;
  device.max_buffer_bytes = int64_t{1} << 40;
  device.buffer_is_host = true;
  device.layout = "packed";
  device.pads = true;
  device.reads = {1, 0};
  device.preferred_batch = {2, 512};
  device.quarantined = {"rope F32: wrong by 0.5"};
  return device;
}

}  // namespace

std::vector<OpAttributes> SampleAttributes() {
  std::vector<OpAttributes> samples = {
      NoAttributes{},
      LeafAttributes{LeafKind::kPageTable, 3},
      ViewAttributes{{5, 4, 3, 2}, {4, 20, 80, 240}, 16},
      ReshapeAttributes{{2, 3, 4, 5}},
      PermuteAttributes{{3, 2, 1, 0}},
      CopyAttributes{DType::kQ4_K},
      RepeatAttributes{{6, 7, 8, 9}},
      AxisAttributes{2},
      PadAttributes{{1, 2, 3, 4}},
      FillAttributes{{4, 3, 2, 1}, 0.75f},
      ScaleAttributes{2.5f, -1.5f},
      ClampAttributes{-3, 3},
      NormAttributes{1e-6f},
      SoftMaxAttributes{0.5f},
      TopKAttributes{8},
      SampleRope(),
      SampleAttention(),
      TriangleAttributes{false, false},
      ReceiveAttributes{DType::kBF16, {7, 5, 3, 1}},
      SampleCandidatesAttributes{64, 32000},
      GetRowsAttributes{1000, true},
      AllReduceAttributes{{5, 2}, DType::kBF16},
      AllGatherAttributes{{6, 1}, DType::kQ8_0, DType::kI32, 3, {9, 8, 7, 6}, {5, 0, 1}}};
  for (int i = 0; i < kUnaryKindCount; ++i) {
    samples.push_back(UnaryAttributes{static_cast<UnaryKind>(i)});
  }
  for (int i = 0; i <= static_cast<int>(GluKind::kSwigluOai); ++i) {
    samples.push_back(GluAttributes{static_cast<GluKind>(i), true, 1.25f, 9});
  }
  return samples;
}

std::vector<Command> SampleCommands() {
  return {ComputeCommand{{NodeId{9}, NodeId{10}}},
          CopyCommand{NodeId{11}, {1, 64}, {2, 128}, 4096},
          CopyExpertsCommand{NodeId{12}, NodeId{4}, {1, 192}, {3, 256}, {-1, 320}, 8192},
          ObserveCommand{NodeId{13}, -5},
          RecordCommand{1},
          WaitCommand{2},
          SendCommand{NodeId{14}, {4, 384}, 512, 6, 2},
          ReceiveCommand{NodeId{15}, {5, 448}, 640, 7, 3},
          CollectiveCommand{NodeId{16}, {5, 512}, {4, 576}, 704, CollectiveAlgorithm::kByParts},
          CollectiveCommand{NodeId{17}, {5, 768}, {4, 832}, 960, {}, true},
          FinishCommand{NodeId{17}}};
}

Graph SampleGraph() {
  Graph graph;
  for (int32_t i = 0; i < kMaxSources; ++i) {
    Node leaf;
    leaf.attributes = LeafAttributes{static_cast<LeafKind>(i % 4), i};
    leaf.layout = {DType::kF16, {8, 2, 1, 1}, {2, 16, 32, 32}};
    leaf.name = "leaf";
    graph.Append(leaf);
  }
  for (const OpInfo& info : AllOps()) {
    for (const OpAttributes& attributes : SampleAttributes()) {
      if (static_cast<int>(attributes.index()) != info.attributes) continue;
      Node node;
      node.op = info.op;
      node.attributes = attributes;
      for (int32_t i = 0; i < info.max_sources; ++i) node.sources.push_back(NodeId{i});
      node.layout = {DType::kQ8_0, {64, 3, 2, 1}, {34, 68, 204, 408}};
      node.view_root = NodeId{1};
      node.view_offset = 96;
      node.output = true;
      node.layer = 17;
      node.name = "blk.17.å";
      graph.Append(node);
    }
  }
  return graph;
}

Program SampleProgram() {
  Program program;
  program.graph = SampleGraph();
  program.devices = {{"first", {0}}, {"second", {1, 0}}};
  for (int kind = 0; kind <= static_cast<int>(SlotKind::kCrossing); ++kind) {
    program.slots.push_back({static_cast<SlotKind>(kind), kind + 1, kind % 2, 4096 + kind});
  }
  for (int32_t i = 0; i < program.graph.size(); ++i) program.places.push_back({i % 7 - 1, 64 * i});
  program.streams = {{1, SampleCommands()}, {0, {RecordCommand{0}}}};
  program.outputs = {{NodeId{9}}, {NodeId{14}}};
  program.communicators = {{{{-1, 0, 1}, {4, -1, 2}}}, {{{3, -1, 5}}}};
  program.event_count = 3;
  program.copies = kMaxStepsInFlight;
  return program;
}

StepRequest SampleStepRequest(const std::vector<std::vector<uint8_t>>& inputs) {
  StepRequest request;
  request.instance = InstanceId{5};
  request.input.edge_step = 1000;
  request.deadline_ms = 2500;
  for (const std::vector<uint8_t>& input : inputs) request.input.inputs.emplace_back(input);
  request.input.table_updates = {{0, 1, 2}, {3, 4000, 5}, {0, 0, 0}};
  request.input.page_copies = {{1, 2, 3, 65536}};
  return request;
}

StepReply SampleStepReply() {
  StepReply reply;
  reply.output.outputs = {{1, 2, 3, 4}, {}, {255}};
  reply.output.compute_seconds = 0.25;
  reply.output.wait_seconds = 0.125;
  reply.output.wire_seconds = 0.0625;
  reply.output.hand_off_seconds = 0.03125;
  return reply;
}

StepReply SampleFailedStepReply() {
  StepReply reply;
  reply.status = absl::AbortedError("the epoch moved");
  return reply;
}

LoadManifest SampleManifest() {
  LoadManifest manifest;
  manifest.files = {{"/models/a-00001-of-00002.gguf", 1 << 20, DigestOf(1), 4096},
                    {"/models/a-00002-of-00002.gguf", 1 << 21, DigestOf(2), 8192}};
  manifest.weights = {{4, 0, 4096, {{0, 128, 2048}, {1, 0, 1024}}, "blk.0.attn_q.weight", {}},
                      {9, 1, 512, {{1, 1 << 20, 512}}, "output.weight", {DigestOf(7)}}};
  return manifest;
}

WeightDigests SampleDigests() {
  WeightDigests digests;
  digests.size = int64_t{3} << 20;
  digests.header = DigestOf(9);
  digests.tensors = {{"token_embd.weight", 4096, (1 << 20) + 5, {DigestOf(10), DigestOf(11)}},
                     {"output norm", 2 << 20, 100, {DigestOf(12)}},
                     {"empty", 4096, 0, {}}};
  return digests;
}

CoordinatorHello SampleCoordinatorHello() { return {SampleProtocol(), "coordinator of tests"}; }

WorkerHello SampleWorkerHello() {
  WorkerHello hello;
  hello.protocol = SampleProtocol();
  hello.name = "worker 1";
  hello.incarnation = "0123456789abcdef";
  hello.host_identity = "host of tests";
  hello.devices = {SampleDevice(), WorkerDevice{}};
  hello.transports = {"ucx", "grpc"};
  hello.draining = true;
  hello.has_cache = true;
  hello.sessions = 2;
  hello.ping_ms = 500;
  hello.lease_ms = 2500;
  return hello;
}

}  // namespace weft
