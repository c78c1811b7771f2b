// Small translations between messages and our types, for the handlers.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "common/transport/message_port.h"
#include "proto/worker.pb.h"
#include "worker/session/session.h"
#include "worker/weights/weight_loader.h"

namespace weft {

absl::Span<const uint8_t> BytesOf(const std::string& data);

// Of a checked message.
PortPeer PeerOf(const proto::Peer& peer);

// What the device says of each node that is asked about; no for what it got wrong in its self-test.
// Errors: INVALID_ARGUMENT for a graph that
// does not verify, an unknown device or node.
absl::Status AnswerSupport(const WorkerParts& parts, const proto::QuerySupportRequest& request,
                           proto::QuerySupportReply& reply);
absl::Status AnswerTensorBytes(absl::Span<Device* const> devices,
                               const proto::QueryTensorBytesRequest& request,
                               proto::QueryTensorBytesReply& reply);

void FillStatistics(const SessionStatistics& statistics, proto::StatisticsReply& reply);
void FillLoadResult(const LoadResult& result, proto::LoadWeightsReply& reply);

}  // namespace weft
