// Graphs to and from their generated messages; for the codecs of what contains them.
#pragma once

#include "absl/status/statusor.h"
#include "common/graph/graph.h"
#include "proto/graph.pb.h"
#include "rpc_backend/protocol/limits.h"

namespace weft {

void EncodeGraphMessage(const Graph& graph, proto::Graph& message);
absl::StatusOr<Graph> DecodeGraphMessage(const proto::Graph& message, const WireLimits& limits);

// Attributes of one node; those of ops without any leave the message as it is.
void EncodeAttributes(const OpAttributes& attributes, proto::Node& message);
// Attributes of the kind that `op` has. Errors: INVALID_ARGUMENT naming the field.
absl::StatusOr<OpAttributes> DecodeAttributes(Op op, const proto::Node& message);

}  // namespace weft
