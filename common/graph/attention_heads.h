// Which KV head the query heads of paged_attention read. Whole models have n_head / n_head_kv of
// them in order for each; a rank's share may begin and end within such a group.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/graph/op_attributes.h"

namespace weft {

struct AttentionHeads {
  int64_t heads = 0;  // query heads there are
  int64_t kv_heads = 0;
  int64_t group = 1;   // query heads of a whole KV head
  int64_t offset = 0;  // position of the first query head in the group of KV head 0

  AttentionHeads(const PagedAttentionAttributes& attributes, int64_t n_head, int64_t n_head_kv)
      : heads(n_head),
        kv_heads(n_head_kv),
        group(attributes.heads_per_kv > 0 ? attributes.heads_per_kv : n_head / n_head_kv),
        offset(attributes.head_offset) {}

  int64_t KvHead(int64_t head) const { return (head + offset) / group; }
  // The query heads [First(kv), First(kv) + Count(kv)) read KV head `kv`.
  int64_t First(int64_t kv) const { return std::clamp<int64_t>(kv * group - offset, 0, heads); }
  int64_t Count(int64_t kv) const { return First(kv + 1) - First(kv); }
};

}  // namespace weft
