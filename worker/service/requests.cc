#include "worker/service/requests.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/graph/graph.h"
#include "rpc_backend/protocol/graph_codec.h"
#include "rpc_backend/protocol/layout_codec.h"
#include "rpc_backend/protocol/status_codec.h"

namespace weft {
namespace {

absl::StatusOr<Device*> FindDevice(absl::Span<Device* const> devices, int32_t position) {
  if (position < 0 || position >= static_cast<int64_t>(devices.size())) {
    return absl::InvalidArgumentError(absl::StrCat("device ", position, " of ", devices.size()));
  }
  return devices[position];
}

proto::WeightSource SourceOf(WeightOrigin origin) {
  switch (origin) {
    case WeightOrigin::kFile:
      return proto::WEIGHT_SOURCE_FILE;
    case WeightOrigin::kCache:
      return proto::WEIGHT_SOURCE_CACHE;
    case WeightOrigin::kStream:
      return proto::WEIGHT_SOURCE_STREAM;
  }
  return proto::WEIGHT_SOURCE_UNKNOWN;
}

}  // namespace

absl::Span<const uint8_t> BytesOf(const std::string& data) {
  return {reinterpret_cast<const uint8_t*>(data.data()), data.size()};
}

PortPeer PeerOf(const proto::Peer& peer) {
  PortPeer made;
  made.number = peer.number();
  made.name = peer.name();
  std::copy_n(peer.token().begin(), std::min(peer.token().size(), made.token.size()),
              made.token.begin());
  return made;
}

absl::Status AnswerSupport(const WorkerParts& parts, const proto::QuerySupportRequest& request,
                           proto::QuerySupportReply& reply) {
  ASSIGN_OR_RETURN(const Device* const device, FindDevice(parts.devices, request.device()));
  const auto position = static_cast<size_t>(request.device());
  const bool tested = position < parts.quarantines.size();
  ASSIGN_OR_RETURN(const Graph graph, DecodeGraph(request.graph()));
  RETURN_IF_ERROR(VerifyGraph(graph));
  for (const int32_t index : request.nodes()) {
    if (index < 0 || index >= graph.size() || !graph.Executes(NodeId{index})) {
      return absl::InvalidArgumentError(
          absl::StrCat("node ", index, " of ", graph.size(), " is not one that is computed"));
    }
    const NodeId id{index};
    proto::NodeSupport& answer = *reply.add_nodes();
    Support support = device->Supports(graph, id);
    if (tested) support.Update(parts.quarantines[position].Check(graph, id));
    answer.set_ok(support.ok());
    if (!support.ok()) {
      answer.set_reason(WireMessage(support));
      continue;
    }
    answer.set_wants(device->Wants(graph, id));
    answer.set_workspace_bytes(device->WorkspaceBytes(graph, id));
  }
  return absl::OkStatus();
}

absl::Status AnswerTensorBytes(absl::Span<Device* const> devices,
                               const proto::QueryTensorBytesRequest& request,
                               proto::QueryTensorBytesReply& reply) {
  ASSIGN_OR_RETURN(Device* const device, FindDevice(devices, request.device()));
  for (const proto::TensorLayout& message : request.layouts()) {
    ASSIGN_OR_RETURN(const TensorLayout layout, DecodeLayout(message));
    reply.add_bytes(device->buffer_type().TensorBytes(layout));
  }
  return absl::OkStatus();
}

void FillStatistics(const SessionStatistics& statistics, proto::StatisticsReply& reply) {
  reply.set_steps(statistics.epoch.steps);
  reply.set_programs_installed(statistics.epoch.programs);
  reply.set_compute_seconds(statistics.epoch.compute_seconds);
  reply.set_wait_seconds(statistics.epoch.wait_seconds);
  reply.set_buffer_bytes(statistics.buffer_bytes);
  for (const PeerTraffic& traffic : statistics.peers) {
    proto::PeerStatistics& peer = *reply.add_peers();
    const KindTraffic total = traffic.Total();
    peer.set_peer(traffic.peer);
    peer.set_transport(traffic.transport);
    peer.set_messages_sent(total.messages_sent);
    peer.set_bytes_sent(total.bytes_sent);
    peer.set_messages_received(total.messages_received);
    peer.set_bytes_received(total.bytes_received);
    peer.set_dropped(traffic.messages_dropped);
  }
}

void FillLoadResult(const LoadResult& result, proto::LoadWeightsReply& reply) {
  reply.Clear();
  reply.set_finished(true);
  reply.set_remark(result.remark);
  for (const LoadedItem& item : result.items) {
    proto::LoadedWeight& weight = *reply.add_weights();
    weight.set_weight(item.weight);
    weight.set_buffer(item.buffer);
    weight.set_offset(item.offset);
    weight.set_source(SourceOf(item.origin));
    weight.set_here(item.here);
  }
}

}  // namespace weft
