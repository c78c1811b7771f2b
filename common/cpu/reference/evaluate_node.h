// The oracle of every op: plain loops over host memory, written to be read. No vector code, no
// threads, no layout tricks; kernels and devices are tested against it.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/graph/graph.h"

namespace weft {

// Computes node `id` of a verified graph. `data` has an entry per node of the graph: the first byte
// of the node's tensor in host memory, laid out as the node's layout says; the node and its sources
// must be there, other entries may be null. Leafs and views do nothing.
//
// Sums are made in double precision and rounded to F32 once. The result may be the memory of the
// first source where the op table allows it (in_place), and is where the op writes its source.
//
// Errors: INVALID_ARGUMENT naming the node where an index that arrived as data (a row id, a slot, a
// table entry, a sequence number) is out of range, or where a value cannot be stored in the type of
// the result. The result is then unspecified, and nothing outside it was written.
// Source: spec G.0, G.1, G.4, G.13; decisions 12 and 14.
absl::Status EvaluateNode(const Graph& graph, NodeId id, absl::Span<uint8_t* const> data);

}  // namespace weft
