// One evaluation of paged_attention; see the source for the method.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "common/cpu/launch.h"
#include "common/cpu/ops/ops.h"
#include "common/cpu/reference/paged_attention_sources.h"
#include "common/graph/attention_heads.h"

namespace weft::cpu {

// Absolute positions that are summed together; whole pages.
inline constexpr int64_t kChunkTokens = 256;

// Sizes, and how the work is divided.
struct AttentionPlan {
  AttentionPlan(const Operands& operands, int threads);
  // Of the workspace: scratch of each worker, then the partial results of all chunks.
  int64_t Bytes(int threads) const;

  reference::AttentionSources from;
  int64_t tokens;
  AttentionHeads map;
  int64_t kv_heads;
  int64_t group;  // most query heads of a KV head
  int64_t value_head;
  int64_t partial_bytes;
  int64_t scratch_bytes;  // scores of a chunk, and two partial results
  bool by_chunk;          // workers share out chunks instead of tokens
  int64_t chunks = 0;     // by_chunk: the most that a token can have
};

class Attention {
 public:
  Attention(const Operands& operands, Launch& launch);
  // Errors: INVALID_ARGUMENT for a sequence, position or page out of range.
  absl::Status Run();

 private:
  // What some keys give for the query heads of one KV head.
  struct Partial {
    float* values;  // [value_head, group]
    float* maxima;  // [group]
    float* sums;    // [group]
  };
  static constexpr int64_t kNoBadPage = std::numeric_limits<int64_t>::min();

  void RunByToken();
  void RunByChunk();
  void AttendToken(int64_t token, int64_t kv_head, int worker);
  // Chunk number `chunk` of those the token sees.
  void AttendChunk(int64_t token, int64_t kv_head, int64_t chunk, const Partial& partial,
                   int worker);
  void FinishScores(int64_t head, int64_t distance, int64_t count, float* scores) const;
  void Clear(const Partial& partial, int64_t kv_head) const;
  void Merge(const Partial& chunk, const Partial& merged, int64_t kv_head) const;
  void Finish(const Partial& merged, int64_t token, int64_t kv_head) const;

  // function(page, place in the page, index from `first`, rows) for the pages of these positions;
  // stops at a table entry that is out of range.
  template <typename Function>
  void EachPage(int64_t token, int64_t first, int64_t last, Function function);
  // False, and the entry kept for the error, if it is out of range.
  bool PageOf(int64_t token, int64_t position, int64_t* page);

  int64_t PositionOf(int64_t token) const {
    return operands_.source(plan_.from.positions).I32(token);
  }
  int64_t ChunkCount(int64_t token) const;
  Partial PartialAt(uint8_t* memory) const;
  Partial ScratchPartial(int worker, int index) const;
  Partial StoredPartial(int64_t pair, int64_t chunk) const;

  const Operands& operands_;
  const PagedAttentionAttributes& attributes_;
  const AttentionPlan plan_;
  const HostTensor& keys_;
  const HostTensor& values_;
  const RowKernel& key_kernel_;
  const RowKernel& value_kernel_;
  Launch& launch_;
  std::atomic<int64_t> bad_page_{kNoBadPage};
};

}  // namespace weft::cpu
