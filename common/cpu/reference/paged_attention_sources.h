// Where the sources of paged_attention stand, and which keys a token sees.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/cpu/reference/host_tensor.h"
#include "common/graph/op_attributes.h"

namespace weft::reference {

// Positions in the source list; -1 where absent. `values` is that of the keys for MLA.
struct AttentionSources {
  explicit AttentionSources(const PagedAttentionAttributes& attributes);
  int values;
  int table;
  int sequence;
  int positions;
  int sinks;
  int slopes;
};

// The lowest position that a token at `position` (>= 0) sees; it sees all from there to its own.
int64_t FirstVisible(const PagedAttentionAttributes& attributes, int64_t position);

// The row of `pages` that holds this absolute position of the token's sequence.
// Errors: INVALID_ARGUMENT where the sequence, the position or the table entry is out of range.
absl::Status ReadPagedRow(const Operands& operands, const AttentionSources& from,
                          const HostTensor& pages, int64_t token, int64_t kv_head, int64_t position,
                          std::vector<float>& row);

}  // namespace weft::reference
