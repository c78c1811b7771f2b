#include "rpc_backend/protocol/message_rules.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>

#include "common/graph/op.h"

namespace weft {
namespace {

using L = WireLimits;
using P = ProgramLimits;

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
constexpr int64_t kMaxAlignment = int64_t{1} << 30;
constexpr int64_t kMaxTransportName = 64;

// Sorted by message and field.
constexpr ValueRule kValueRules[] = {
    {"AllocateBufferReply", "buffer", 0, kAny},
    {"AllocateBufferRequest", "bytes", 0, &L::buffer_bytes},
    {"AllocateBufferRequest", "device", 0, &L::devices},
    {"AllocateBufferRequest", "session", 0, kAny},
    {"AllocateBufferRequest", "usage", 0, 2},
    {"Binding", "buffer", 0, kAny},
    {"Binding", "id", 0, kAny},
    {"Binding", "kind", 0, 1},
    {"Binding", "offset", 0, &L::buffer_bytes},
    {"ChallengeReply", "challenge", 32, 32},
    {"ConnectPeersRequest", "epoch", 0, kAny},
    {"ConnectPeersRequest", "session", 0, kAny},
    {"ConnectPeersRequest", "timeout_ms", 0, &L::timeout_ms},
    {"DataMessage", "bytes", 0, kAny},
    {"DataMessage", "epoch", 0, kAny},
    {"DataMessage", "from", 0, kAny},
    {"DataMessage", "id", 0, kAny},
    {"DataMessage", "kind", 0, 31},
    {"DataMessage", "nonce", 0, 32},
    {"DataMessage", "payload", 0, &L::data_message_bytes},
    {"DataMessage", "port", 0, kAny},
    {"DataMessage", "port_address", 0, 32},
    {"DataMessage", "proof", 0, 32},
    {"DataMessage", "session", 0, kAny},
    {"DataMessage", "step", 0, kAny},
    {"DataMessage", "ticket", 0, kAny},
    {"DataMessage", "to", 0, kAny},
    {"DeviceInfo", "alignment", 1, kMaxAlignment},
    {"DeviceInfo", "arithmetic", 0, &L::name_bytes},
    {"DeviceInfo", "batch_max", 0, kAny},
    {"DeviceInfo", "batch_min", 0, kAny},
    {"DeviceInfo", "buffer_type", 0, &L::name_bytes},
    {"DeviceInfo", "description", 0, &L::name_bytes},
    {"DeviceInfo", "kind", 1, 16},
    {"DeviceInfo", "layout", 0, &L::name_bytes},
    {"DeviceInfo", "max_buffer_bytes", 0, kAny},
    {"DeviceInfo", "memory_free", 0, kAny},
    {"DeviceInfo", "memory_total", 0, kAny},
    {"DeviceInfo", "quarantined", 1, &L::reason_bytes},
    {"DeviceInfo", "reads", 0, &L::devices},
    {"DrainReply", "sessions", 0, kAny},
    {"FailedWeight", "here", 0, &L::buffer_bytes},
    {"FailedWeight", "reason", 0, &L::reason_bytes},
    {"FailedWeight", "weight", 0, kAny},
    {"FileSlice", "bytes", 0, &L::file_bytes},
    {"FileSlice", "file", 0, &L::files},
    {"FileSlice", "offset", 0, &L::file_bytes},
    {"FillBufferRequest", "buffer", 0, kAny},
    {"FillBufferRequest", "bytes", 0, &L::buffer_bytes},
    {"FillBufferRequest", "offset", 0, &L::buffer_bytes},
    {"FillBufferRequest", "session", 0, kAny},
    {"FillBufferRequest", "value", 0, 255},
    {"FindWeightsReply", "weights", 0, kAny},
    {"FindWeightsRequest", "manifest", 0, &L::embedded_message_bytes},
    {"FindWeightsRequest", "session", 0, kAny},
    {"FindWeightsRequest", "sha256", 0, 32},
    {"FreeBufferRequest", "buffer", 0, kAny},
    {"FreeBufferRequest", "session", 0, kAny},
    {"GiveWeightsReply", "bytes", 0, kAny},
    {"GiveWeightsRequest", "manifest", 0, &L::embedded_message_bytes},
    {"GiveWeightsRequest", "peer", 0, kAny},
    {"GiveWeightsRequest", "session", 0, kAny},
    {"GiveWeightsRequest", "sha256", 0, 32},
    {"GiveWeightsRequest", "starts", 0, &L::buffer_bytes},
    {"GiveWeightsRequest", "transfer", 0, kAny},
    {"HelloReply", "features", 1, &L::name_bytes},
    {"HelloReply", "host_identity", 0, &L::name_bytes},
    {"HelloReply", "incarnation", 16, 16},
    {"HelloReply", "lease_ms", 0, &L::timeout_ms},
    {"HelloReply", "name", 0, &L::name_bytes},
    {"HelloReply", "op_set", 32, 32},
    {"HelloReply", "ping_ms", 0, &L::timeout_ms},
    {"HelloReply", "sessions", 0, kAny},
    {"HelloReply", "transports", 1, kMaxTransportName},
    {"HelloRequest", "coordinator", 0, &L::name_bytes},
    {"HelloRequest", "features", 1, &L::name_bytes},
    {"HelloRequest", "op_set", 32, 32},
    {"HostFacts", "huge_pages", 0, 64},
    {"HostFacts", "kernel", 0, 64},
    {"HostFacts", "locked_limit", -1, kAny},
    {"HostFacts", "memory_available", -1, kAny},
    {"HostFacts", "memory_bytes", -1, kAny},
    {"HostFacts", "memory_limit", -1, kAny},
    {"HostFacts", "open_files_limit", -1, kAny},
    {"HostFacts", "processors", -1, kAny},
    {"HostFacts", "shared_bytes", -1, kAny},
    {"HostFacts", "shared_free", -1, kAny},
    {"HostFacts", "unix_microseconds", -1, kAny},
    {"InstallProgramReply", "program", 0, kAny},
    {"InstallProgramRequest", "program", 0, &L::embedded_message_bytes},
    {"InstallProgramRequest", "session", 0, kAny},
    {"InstallProgramRequest", "sha256", 0, 32},
    {"InstantiateReply", "instance", 0, kAny},
    {"InstantiateReply", "memory_replaced", 0, kAny},
    {"InstantiateReply", "prepared_again", 0, kAny},
    {"InstantiateReply", "replaced_reason", 0, &L::reason_bytes},
    {"InstantiateRequest", "program", 0, kAny},
    {"InstantiateRequest", "session", 0, kAny},
    {"InstantiateRequest", "sha256", 0, 32},
    {"JoinReply", "lease_ms", 0, &L::timeout_ms},
    {"JoinReply", "proof", 32, 32},
    {"JoinRequest", "address", 1, 300},
    {"JoinRequest", "challenge", 32, 32},
    {"JoinRequest", "host_identity", 0, &L::name_bytes},
    {"JoinRequest", "incarnation", 16, 16},
    {"JoinRequest", "name", 0, &L::name_bytes},
    {"JoinRequest", "nonce", 32, 32},
    {"JoinRequest", "proof", 32, 32},
    {"LoadWeightsReply", "bytes_done", 0, kAny},
    {"LoadWeightsReply", "bytes_total", 0, kAny},
    {"LoadWeightsReply", "remark", 0, &L::reason_bytes},
    {"LoadWeightsRequest", "manifest", 0, &L::embedded_message_bytes},
    {"LoadWeightsRequest", "session", 0, kAny},
    {"LoadWeightsRequest", "sha256", 0, 32},
    {"LoadedWeight", "buffer", 0, kAny},
    {"LoadedWeight", "here", 0, &L::buffer_bytes},
    {"LoadedWeight", "offset", 0, &L::buffer_bytes},
    {"LoadedWeight", "weight", 0, kAny},
    {"MeasureLinkReply", "transport", 0, kMaxTransportName},
    {"MeasureLinkRequest", "peer", 0, kAny},
    {"MeasureLinkRequest", "session", 0, kAny},
    {"MeasureLinkRequest", "timeout_ms", 0, &L::timeout_ms},
    {"ModelFile", "data_offset", 0, &L::file_bytes},
    {"ModelFile", "identity", 32, 32},
    {"ModelFile", "path", 0, &L::path_bytes},
    {"ModelFile", "size", 0, &L::file_bytes},
    {"NodeSupport", "reason", 0, &L::reason_bytes},
    {"NodeSupport", "workspace_bytes", 0, kAny},
    {"OpenEpochReply", "address", 0, &L::address_bytes},
    {"OpenEpochRequest", "coordinator_number", 0, kAny},
    {"OpenEpochRequest", "epoch", 0, kAny},
    {"OpenEpochRequest", "own_number", 0, kAny},
    {"OpenEpochRequest", "session", 0, kAny},
    {"OpenEpochRequest", "session_key", 32, 32},
    {"OpenEpochRequest", "transport", 0, kMaxTransportName},
    {"Peer", "address", 0, &L::address_bytes},
    {"Peer", "name", 0, &L::name_bytes},
    {"Peer", "number", 0, kAny},
    {"Peer", "token", 16, 16},
    {"PeerStatistics", "bytes_received", 0, kAny},
    {"PeerStatistics", "bytes_sent", 0, kAny},
    {"PeerStatistics", "dropped", 0, kAny},
    {"PeerStatistics", "messages_received", 0, kAny},
    {"PeerStatistics", "messages_sent", 0, kAny},
    {"PeerStatistics", "peer", 0, kAny},
    {"PeerStatistics", "transport", 0, kMaxTransportName},
    {"ProtocolVersion", "major", 0, kAny},
    {"ProtocolVersion", "minor", 0, kAny},
    {"ProtocolVersion", "release", 0, &L::name_bytes},
    {"QuerySupportRequest", "device", 0, &L::devices},
    {"QuerySupportRequest", "graph", 0, &L::embedded_message_bytes},
    {"QuerySupportRequest", "nodes", 0, &P::nodes},
    {"QuerySupportRequest", "session", 0, kAny},
    {"QueryTensorBytesReply", "bytes", 0, kAny},
    {"QueryTensorBytesRequest", "device", 0, &L::devices},
    {"QueryTensorBytesRequest", "session", 0, kAny},
    {"ReadBufferReply", "data", 0, &L::transfer_bytes},
    {"ReadBufferRequest", "buffer", 0, kAny},
    {"ReadBufferRequest", "bytes", 0, &L::transfer_bytes},
    {"ReadBufferRequest", "offset", 0, &L::buffer_bytes},
    {"ReadBufferRequest", "session", 0, kAny},
    {"ReleaseInstanceRequest", "instance", 0, kAny},
    {"ReleaseInstanceRequest", "session", 0, kAny},
    {"SessionReply", "farewell", 0, &L::reason_bytes},
    {"SessionReply", "ping", 0, kAny},
    {"SessionReply", "session", 0, kAny},
    {"SessionRequest", "coordinator", 0, &L::name_bytes},
    {"SessionRequest", "ping", 0, kAny},
    {"StatisticsReply", "buffer_bytes", 0, kAny},
    {"StatisticsReply", "programs_installed", 0, kAny},
    {"StatisticsReply", "steps", 0, kAny},
    {"StatisticsRequest", "session", 0, kAny},
    {"TakeWeightsReply", "bytes_done", 0, kAny},
    {"TakeWeightsRequest", "peer", 0, kAny},
    {"TakeWeightsRequest", "session", 0, kAny},
    {"TakeWeightsRequest", "transfer", 0, kAny},
    {"TakenWeight", "digests", 0, &L::embedded_message_bytes},
    {"TakenWeight", "weight", 0, kAny},
    {"WeightEntry", "bytes", 0, &L::buffer_bytes},
    {"WeightEntry", "device", 0, &L::devices},
    {"WeightEntry", "digests", 0, &L::embedded_message_bytes},
    {"WeightEntry", "name", 0, &L::name_bytes},
    {"WeightEntry", "weight", 0, kAny},
    {"WriteBufferRequest", "buffer", 0, kAny},
    {"WriteBufferRequest", "data", 0, &L::transfer_bytes},
    {"WriteBufferRequest", "offset", 0, &L::buffer_bytes},
    {"WriteBufferRequest", "session", 0, kAny},
};

constexpr ListRule kListRules[] = {
    {"AllGatherAttributes", "counts", kMaxRanks},
    {"AllGatherAttributes", "ne", 4},
    {"Communicator", "ranks", kMaxRanks},
    {"ComputeCommand", "nodes", &P::nodes},
    {"ConnectPeersRequest", "peers", &L::peers},
    {"DeviceInfo", "quarantined", &L::quarantined},
    {"DeviceInfo", "reads", &L::devices},
    {"ExtentsAttributes", "ne", 4},
    {"FillAttributes", "ne", 4},
    {"FindWeightsReply", "weights", &L::weights},
    {"GiveWeightsRequest", "starts", &L::weights},
    {"Graph", "nodes", &P::nodes},
    {"Graph", "ops", 256},
    {"HelloReply", "devices", &L::devices},
    {"HelloReply", "features", &L::features},
    {"HelloReply", "transports", 8},
    {"HelloRequest", "features", &L::features},
    {"InstantiateRequest", "bindings", &L::bindings},
    {"LoadManifest", "files", &L::files},
    {"LoadManifest", "weights", &L::weights},
    {"LoadWeightsReply", "weights", &L::weights},
    {"Node", "sources", kMaxSources},
    {"OpenEpochRequest", "expected", &L::peers},
    {"PermuteAttributes", "axes", 4},
    {"Program", "communicators", &P::communicators},
    {"Program", "devices", &P::devices},
    {"Program", "outputs", &P::outputs},
    {"Program", "places", &P::nodes},
    {"Program", "slots", &P::slots},
    {"Program", "streams", &P::devices},
    {"ProgramDevice", "memories", &P::devices},
    {"QuerySupportReply", "nodes", &P::nodes},
    {"QuerySupportRequest", "nodes", &P::nodes},
    {"QueryTensorBytesReply", "bytes", &L::layouts},
    {"QueryTensorBytesRequest", "layouts", &L::layouts},
    {"ReceiveAttributes", "ne", 4},
    {"RopeAttributes", "sections", 4},
    {"StatisticsReply", "peers", &L::peers},
    {"Stream", "commands", &P::commands},
    {"TakeWeightsReply", "failed", &L::weights},
    {"TakeWeightsRequest", "weights", &L::weights},
    {"TensorLayout", "nb", 4},
    {"TensorLayout", "ne", 4},
    {"ViewAttributes", "nb", 4},
    {"ViewAttributes", "ne", 4},
    {"WeightEntry", "slices", &L::slices},
};

template <typename Rule>
constexpr bool Precedes(const Rule& a, const Rule& b) {
  return a.message < b.message || (a.message == b.message && a.field < b.field);
}

template <typename Rule, size_t kCount>
constexpr bool IsSorted(const Rule (&rules)[kCount]) {
  for (size_t i = 1; i < kCount; ++i) {
    if (!Precedes(rules[i - 1], rules[i])) return false;
  }
  return true;
}
static_assert(IsSorted(kValueRules) && IsSorted(kListRules), "rows are in order, each once");

template <typename Rule, size_t kCount>
const Rule* Find(const Rule (&rules)[kCount], std::string_view message, std::string_view field) {
  const auto* found = std::lower_bound(
      std::begin(rules), std::end(rules), std::tie(message, field),
      [](const Rule& rule, const auto& key) { return std::tie(rule.message, rule.field) < key; });
  const bool match = found != std::end(rules) && found->message == message && found->field == field;
  return match ? found : nullptr;
}

}  // namespace

const ValueRule* FindValueRule(std::string_view message, std::string_view field) {
  return Find(kValueRules, message, field);
}

const ListRule* FindListRule(std::string_view message, std::string_view field) {
  return Find(kListRules, message, field);
}

}  // namespace weft
