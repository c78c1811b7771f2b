// Graphs to and from bytes (proto/graph.proto). Ops and functions travel by name.
//
// A decoded graph is well-formed, not legal: every op exists and has attributes of its kind, every
// data type is known, sources precede their node, view roots exist. What the numbers mean is
// VerifyGraph's business, which can take any decoded graph without crashing.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/graph/graph.h"
#include "rpc_backend/protocol/limits.h"

namespace weft {

// Equal graphs give equal bytes. The ops of the graph are known.
std::string EncodeGraph(const Graph& graph);

// Errors: INVALID_ARGUMENT naming node and field, "node 12 (rope 'q'): field 'kind' = 9: ...".
absl::StatusOr<Graph> DecodeGraph(std::string_view bytes, const WireLimits& limits = {});

}  // namespace weft
