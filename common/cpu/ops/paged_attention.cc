// Attention over KV pages in chunks of 256 absolute positions.
//
// Each chunk gives for every query head its maximum score, the sum of exp(score - maximum) and the
// weighted sum of the values; chunks are merged in order. A chunk's bits depend only on the query
// and the chunk's keys, and the merge is one chain per head, so neither the number of threads nor
// the other tokens of the batch can change a result (decision 20).
#include "common/cpu/ops/paged_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/cpu/ops/ops.h"

namespace weft::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

int64_t ChunksOf(int64_t first, int64_t position) {
  return position / kChunkTokens - first / kChunkTokens + 1;
}

}  // namespace

AttentionPlan::AttentionPlan(const Operands& operands, int threads)
    : from(operands.As<PagedAttentionAttributes>()),
      map(operands.As<PagedAttentionAttributes>(), operands.result.extent(1),
          operands.source(1).extent(2)) {
  const auto& attributes = operands.As<PagedAttentionAttributes>();
  tokens = operands.result.extent(2);
  kv_heads = map.kv_heads;
  group = std::min(map.group, map.heads);
  value_head = operands.result.extent(0);
  // Values first: they start on a cache line.
  partial_bytes = AlignUp(group * value_head * 4, 64) + AlignUp(group * 2 * 4, 64);
  scratch_bytes = AlignUp(group * kChunkTokens * 4, 64) + 2 * partial_bytes;
  by_chunk = threads > 1 && tokens * kv_heads < 4 * threads;
  if (!by_chunk) return;
  const int64_t positions = operands.source(from.table).extent(0) * kPageTokens;
  chunks = CeilDivide(positions, kChunkTokens);
  if (attributes.window_kind != WindowKind::kNone) {
    const int64_t window = std::min(attributes.window, positions);
    chunks = std::min(chunks, CeilDivide(window, kChunkTokens) + 1);
  }
}

int64_t AttentionPlan::Bytes(int threads) const {
  const std::optional<int64_t> partials =
      CheckedMultiply(tokens * kv_heads * chunks, partial_bytes);
  const std::optional<int64_t> scratch = CheckedMultiply(threads, scratch_bytes);
  const std::optional<int64_t> sum =
      partials && scratch ? CheckedAdd(*partials, *scratch) : std::nullopt;
  return sum.value_or(kTooMuch);
}

int64_t PagedAttentionWorkspace(const Operands& operands, const KernelTable&, int threads) {
  return AttentionPlan(operands, threads).Bytes(threads);
}

absl::Status PagedAttentionSupport(const Operands& operands, const KernelTable& kernels) {
  const reference::AttentionSources from(operands.As<PagedAttentionAttributes>());
  for (const int source : {1, from.values}) {
    const DType dtype = operands.source(source).layout.dtype;
    const Format format = FormatOf(dtype);
    if (format == kFormatCount || kernels.row[format].scores == nullptr ||
        kernels.row[format].accumulate == nullptr) {
      return absl::UnimplementedError(absl::StrCat("attention over pages of type ",
                                                   AbslView(DTypeName(dtype)),
                                                   " (F32, F16, BF16 and ", "Q8_0 are possible)"));
    }
  }
  return absl::OkStatus();
}

Attention::Attention(const Operands& operands, Launch& launch)
    : operands_(operands),
      attributes_(operands.As<PagedAttentionAttributes>()),
      plan_(operands, launch.threads()),
      keys_(operands.source(1)),
      values_(operands.source(plan_.from.values)),
      key_kernel_(launch.kernels().row[FormatOf(keys_.layout.dtype)]),
      value_kernel_(launch.kernels().row[FormatOf(values_.layout.dtype)]),
      launch_(launch) {}

absl::Status Attention::Run() {
  for (int64_t token = 0; token < plan_.tokens; ++token) {
    const int64_t position = PositionOf(token);
    if (position < 0) continue;
    const HostTensor& table = operands_.source(plan_.from.table);
    const int64_t sequence = operands_.source(plan_.from.sequence).I32(token);
    absl::Status status = reference::CheckIndex("sequence", sequence, table.extent(1));
    if (!status.ok()) return status;
    status = reference::CheckIndex("position", position, table.extent(0) * kPageTokens);
    if (!status.ok()) return status;
  }
  if (plan_.by_chunk) {
    RunByChunk();
  } else {
    RunByToken();
  }
  const int64_t bad = bad_page_.load();
  if (bad == kNoBadPage) return absl::OkStatus();
  return reference::CheckIndex("page", bad, keys_.extent(3));
}

void Attention::RunByToken() {
  launch_.ForPieces(plan_.tokens * plan_.kv_heads, [&](int64_t pair, int worker) {
    AttendToken(pair / plan_.kv_heads, pair % plan_.kv_heads, worker);
  });
}

void Attention::AttendToken(int64_t token, int64_t kv_head, int worker) {
  const int64_t position = PositionOf(token);
  const Partial chunk = ScratchPartial(worker, 0);
  const Partial merged = ScratchPartial(worker, 1);
  Clear(merged, kv_head);
  if (position >= 0) {
    const int64_t first = reference::FirstVisible(attributes_, position);
    for (int64_t c = 0; c < ChunksOf(first, position); ++c) {
      AttendChunk(token, kv_head, c, chunk, worker);
      Merge(chunk, merged, kv_head);
      launch_.Tick(worker);
    }
  }
  Finish(merged, token, kv_head);
}

// Few tokens: the chunks of one token are shared out, and merged when all are there.
void Attention::RunByChunk() {
  int64_t most = 0;
  for (int64_t token = 0; token < plan_.tokens; ++token) most = std::max(most, ChunkCount(token));
  const int64_t pairs = plan_.tokens * plan_.kv_heads;
  const auto attend = [&](int64_t piece, int worker) {
    const int64_t pair = piece / most;
    const int64_t token = pair / plan_.kv_heads;
    const int64_t chunk = piece % most;
    if (chunk >= ChunkCount(token)) return;
    AttendChunk(token, pair % plan_.kv_heads, chunk, StoredPartial(pair, chunk), worker);
  };
  // One chunk for each head is little work: waking the others costs more.
  if (most < 2) {
    for (int64_t piece = 0; piece < pairs * most; ++piece) attend(piece, 0);
  } else {
    launch_.ForPieces(pairs * most, attend);
  }
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const int64_t token = pair / plan_.kv_heads;
    const int64_t kv_head = pair % plan_.kv_heads;
    const Partial merged = ScratchPartial(0, 1);
    Clear(merged, kv_head);
    for (int64_t c = 0; c < ChunkCount(token); ++c) Merge(StoredPartial(pair, c), merged, kv_head);
    Finish(merged, token, kv_head);
  }
}

int64_t Attention::ChunkCount(int64_t token) const {
  const int64_t position = PositionOf(token);
  if (position < 0) return 0;
  return ChunksOf(reference::FirstVisible(attributes_, position), position);
}

Attention::Partial Attention::PartialAt(uint8_t* memory) const {
  auto* values = reinterpret_cast<float*>(memory);
  auto* maxima = reinterpret_cast<float*>(memory + AlignUp(plan_.group * plan_.value_head * 4, 64));
  return {values, maxima, maxima + plan_.group};
}

Attention::Partial Attention::ScratchPartial(int worker, int index) const {
  uint8_t* scratch = launch_.workspace() + worker * plan_.scratch_bytes;
  return PartialAt(scratch + AlignUp(plan_.group * kChunkTokens * 4, 64) +
                   index * plan_.partial_bytes);
}

Attention::Partial Attention::StoredPartial(int64_t pair, int64_t chunk) const {
  uint8_t* partials = launch_.workspace() + launch_.threads() * plan_.scratch_bytes;
  return PartialAt(partials + (pair * plan_.chunks + chunk) * plan_.partial_bytes);
}

// Nothing but the sinks.
void Attention::Clear(const Partial& partial, int64_t kv_head) const {
  std::fill(partial.values, partial.values + plan_.group * plan_.value_head, 0.0f);
  for (int64_t g = 0; g < plan_.map.Count(kv_head); ++g) {
    partial.maxima[g] = -kInfinity;
    partial.sums[g] = 0;
    if (!attributes_.has_sinks) continue;
    partial.maxima[g] = operands_.source(plan_.from.sinks).F32(plan_.map.First(kv_head) + g);
    partial.sums[g] = 1;
  }
}

bool Attention::PageOf(int64_t token, int64_t position, int64_t* page) {
  const int64_t sequence = operands_.source(plan_.from.sequence).I32(token);
  *page = operands_.source(plan_.from.table).I32(position / kPageTokens, sequence);
  if (*page >= 0 && *page < keys_.extent(3)) return true;
  int64_t none = kNoBadPage;
  bad_page_.compare_exchange_strong(none, *page);
  return false;
}

template <typename Function>
void Attention::EachPage(int64_t token, int64_t first, int64_t last, Function function) {
  for (int64_t at = first; at <= last;) {
    const int64_t end = std::min((at / kPageTokens + 1) * kPageTokens, last + 1);
    int64_t page = 0;
    if (!PageOf(token, at, &page)) return;
    function(page, at % kPageTokens, at - first, end - at);
    at = end;
  }
}

void Attention::AttendChunk(int64_t token, int64_t kv_head, int64_t chunk, const Partial& partial,
                            int worker) {
  const int64_t position = PositionOf(token);
  const int64_t visible = reference::FirstVisible(attributes_, position);
  const int64_t start = (visible / kChunkTokens + chunk) * kChunkTokens;
  const int64_t first = std::max(visible, start);
  const int64_t last = std::min(position, start + kChunkTokens - 1);
  const int64_t count = last - first + 1;
  auto* scores = reinterpret_cast<float*>(launch_.workspace() + worker * plan_.scratch_bytes);
  const HostTensor& q = operands_.source(0);
  // A page's rows are read once for all query heads that share them.
  EachPage(token, first, last, [&](int64_t page, int64_t place, int64_t at, int64_t rows) {
    for (int64_t g = 0; g < plan_.map.Count(kv_head); ++g) {
      key_kernel_.scores(q.extent(0), &q.F32(0, plan_.map.First(kv_head) + g, token),
                         keys_.Address(0, place, kv_head, page), keys_.layout.nb[1], rows,
                         scores + g * kChunkTokens + at);
    }
  });
  std::fill(partial.values, partial.values + plan_.group * plan_.value_head, 0.0f);
  for (int64_t g = 0; g < plan_.map.Count(kv_head); ++g) {
    float* row = scores + g * kChunkTokens;
    FinishScores(plan_.map.First(kv_head) + g, first - position, count, row);
    partial.maxima[g] = launch_.kernels().max(count, row);
    partial.sums[g] = launch_.kernels().exp_sum(count, row, partial.maxima[g], row);
  }
  EachPage(token, first, last, [&](int64_t page, int64_t place, int64_t at, int64_t rows) {
    for (int64_t g = 0; g < plan_.map.Count(kv_head); ++g) {
      value_kernel_.accumulate(plan_.value_head, scores + g * kChunkTokens + at,
                               values_.Address(0, place, kv_head, page), values_.layout.nb[1], rows,
                               partial.values + g * plan_.value_head);
    }
  });
}

// Scale, soft cap and slope; `distance` (<= 0) is that of the first key.
void Attention::FinishScores(int64_t head, int64_t distance, int64_t count, float* scores) const {
  const KernelTable& kernels = launch_.kernels();
  if (attributes_.softcap != 0) {
    kernels.scale(count, scores, attributes_.scale / attributes_.softcap, 0, scores);
    kernels.unary[kUnaryTanh](count, scores, scores);
    kernels.scale(count, scores, attributes_.softcap, 0, scores);
  } else {
    kernels.scale(count, scores, attributes_.scale, 0, scores);
  }
  if (!attributes_.has_slopes) return;
  const float slope = operands_.source(plan_.from.slopes).F32(head);
  for (int64_t i = 0; i < count; ++i) scores[i] += slope * static_cast<float>(distance + i);
}

void Attention::Merge(const Partial& chunk, const Partial& merged, int64_t kv_head) const {
  const KernelTable& kernels = launch_.kernels();
  for (int64_t g = 0; g < plan_.map.Count(kv_head); ++g) {
    const float maximum = std::max(chunk.maxima[g], merged.maxima[g]);
    // A maximum of -infinity means that nothing counts so far.
    const float keep = maximum == -kInfinity ? 0 : std::exp(merged.maxima[g] - maximum);
    const float add = maximum == -kInfinity ? 0 : std::exp(chunk.maxima[g] - maximum);
    float* values = merged.values + g * plan_.value_head;
    kernels.scale(plan_.value_head, values, keep, 0, values);
    kernels.scale_add(plan_.value_head, chunk.values + g * plan_.value_head, add, values);
    merged.sums[g] = merged.sums[g] * keep + chunk.sums[g] * add;
    merged.maxima[g] = maximum;
  }
}

void Attention::Finish(const Partial& merged, int64_t token, int64_t kv_head) const {
  for (int64_t g = 0; g < plan_.map.Count(kv_head); ++g) {
    const float factor = merged.sums[g] == 0 ? 0 : 1 / merged.sums[g];
    launch_.kernels().scale(plan_.value_head, merged.values + g * plan_.value_head, factor, 0,
                            &operands_.result.F32(0, plan_.map.First(kv_head) + g, token));
  }
}

absl::Status RunPagedAttention(const Operands& operands, Launch& launch) {
  return Attention(operands, launch).Run();
}

}  // namespace weft::cpu
