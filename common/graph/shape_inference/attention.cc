// Shape rules and costs of attention over KV pages (decision 12) and of the recurrent ops.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/graph/attention_heads.h"
#include "common/graph/shape_inference/rules.h"

namespace weft::infer {
namespace {

// pages [head, 16, n_head_kv, n_pages], packed.
absl::Status NeedPages(Sources sources, int index) {
  const TensorLayout& pages = sources[index];
  if (!GetDTypeInfo(pages.dtype).codec || !IsContiguous(pages) || pages.ne[1] != kPageTokens) {
    return Bad(absl::StrCat("source ", index, " is ", LayoutText(pages), ", want packed pages of ",
                            kPageTokens, " tokens"));
  }
  return absl::OkStatus();
}

absl::Status NeedVector(Sources sources, int index, DType dtype, int64_t count) {
  RETURN_IF_ERROR(NeedDType(sources, index, dtype));
  if (!IsContiguous(sources[index])) return Bad(absl::StrCat("source ", index, " has gaps"));
  return NeedExtents(sources, index, {count, 1, 1, 1});
}

// Every query head has a KV head that is there.
absl::Status CheckHeads(const PagedAttentionAttributes& attention, int64_t heads,
                        int64_t kv_heads) {
  if (attention.heads_per_kv < 0 || attention.head_offset < 0 ||
      (attention.heads_per_kv == 0 && attention.head_offset != 0)) {
    return Bad(absl::StrCat(attention.heads_per_kv, " queries per KV head from ",
                            attention.head_offset, " on"));
  }
  if (heads > 0 && AttentionHeads(attention, heads, kv_heads).KvHead(heads - 1) >= kv_heads) {
    return Bad(absl::StrCat("queries without keys: ", heads, " heads, ", attention.heads_per_kv,
                            " per KV head from ", attention.head_offset, " on, of ", kv_heads));
  }
  return absl::OkStatus();
}

}  // namespace

Result Rope(const OpAttributes& attributes, Sources sources) {
  const auto& rope = std::get<RopeAttributes>(attributes);
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  const Extents& x = sources[0].ne;
  if (rope.kind > RopeKind::kInterleaved) return Bad("unknown kind");
  if (rope.dimensions < 2 || rope.dimensions % 2 != 0 || rope.dimensions > x[0]) {
    return Bad(absl::StrCat("rotates ", rope.dimensions, " of ", x[0], " elements"));
  }
  RETURN_IF_ERROR(NeedFinite({rope.base, rope.frequency_scale, rope.extrapolation,
                              rope.attention_factor, rope.beta_fast, rope.beta_slow}));
  if (rope.base <= 0 || rope.frequency_scale <= 0) return Bad("base and scale must be > 0");
  if (rope.extrapolation != 0 &&
      (rope.original_context < 1 || rope.beta_fast <= 0 || rope.beta_slow <= 0)) {
    return Bad(absl::StrCat("YaRN over a context of ", rope.original_context));
  }
  const bool sections = rope.kind == RopeKind::kSections || rope.kind == RopeKind::kInterleaved;
  if (sections) {
    int64_t sum = 0;
    for (const int32_t section : rope.sections) {
      if (section < 0) return Bad("negative section");
      sum += section;
    }
    if (sum < 1) return Bad("sections are empty");
  }
  const std::optional<int64_t> positions = CheckedMultiply(x[2], sections ? 4 : 1);
  if (!positions || x[3] != 1) return Bad("too many tokens");
  RETURN_IF_ERROR(NeedVector(sources, 1, DType::kI32, *positions));
  if (sources.size() > 2) {
    RETURN_IF_ERROR(NeedVector(sources, 2, DType::kF32, rope.dimensions / 2));
  }
  return PackedLayout(DType::kF32, x);
}

Result KvStore(const OpAttributes&, Sources sources) {
  RETURN_IF_ERROR(NeedPages(sources, 0));
  RETURN_IF_ERROR(NeedF32Rows(sources, 1));
  const Extents& pages = sources[0].ne;
  RETURN_IF_ERROR(NeedExtents(sources, 1, {pages[0], pages[2], sources[1].ne[2], 1}));
  RETURN_IF_ERROR(NeedVector(sources, 2, DType::kI32, sources[1].ne[2]));
  return sources[0];
}

Result PagedAttention(const OpAttributes& attributes, Sources sources) {
  const auto& attention = std::get<PagedAttentionAttributes>(attributes);
  RETURN_IF_ERROR(NeedFinite({attention.scale, attention.softcap}));
  if (attention.softcap < 0) return Bad(absl::StrCat("softcap ", attention.softcap));
  const bool own_values = attention.value_dimensions == 0;
  const int table = own_values ? 3 : 2;
  const int want = table + 3 + (attention.has_sinks ? 1 : 0) + (attention.has_slopes ? 1 : 0);
  if (static_cast<int>(sources.size()) != want) {
    return Bad(absl::StrCat("has ", sources.size(), " sources, its attributes want ", want));
  }
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  RETURN_IF_ERROR(NeedPages(sources, 1));
  const Extents& q = sources[0].ne;
  const Extents& k = sources[1].ne;
  if (q[3] != 1 || q[0] != k[0] || k[2] < 1 || (attention.heads_per_kv == 0 && q[1] % k[2] != 0)) {
    return Bad(absl::StrCat("queries ", ExtentsText(q), " do not fit pages ", ExtentsText(k)));
  }
  RETURN_IF_ERROR(CheckHeads(attention, q[1], k[2]));
  int64_t value_head = attention.value_dimensions;
  if (own_values) {
    RETURN_IF_ERROR(NeedPages(sources, 2));
    value_head = sources[2].ne[0];
    RETURN_IF_ERROR(NeedExtents(sources, 2, {value_head, kPageTokens, k[2], k[3]}));
  } else if (value_head < 1 || value_head > k[0] ||
             value_head % GetDTypeInfo(sources[1].dtype).block_elements != 0) {
    return Bad(absl::StrCat("value prefix ", value_head, " of rows of ", k[0]));
  }
  if (attention.window_kind > WindowKind::kChunked ||
      (attention.window_kind != WindowKind::kNone && attention.window < 1)) {
    return Bad(absl::StrCat("window ", attention.window));
  }
  RETURN_IF_ERROR(NeedDType(sources, table, DType::kI32));
  const Extents& pages = sources[table].ne;
  if (!IsContiguous(sources[table]) || pages[2] != 1 || pages[3] != 1) return Bad("page table");
  RETURN_IF_ERROR(NeedVector(sources, table + 1, DType::kI32, q[2]));
  RETURN_IF_ERROR(NeedVector(sources, table + 2, DType::kI32, q[2]));
  for (int i = table + 3; i < want; ++i) {
    RETURN_IF_ERROR(NeedVector(sources, i, DType::kF32, q[1]));
  }
  return PackedLayout(DType::kF32, {value_head, q[1], q[2], 1});
}

Result SsmConv(const OpAttributes&, Sources sources) {
  RETURN_IF_ERROR(NeedF32Rows(sources, 0));
  RETURN_IF_ERROR(NeedF32Rows(sources, 1));
  const Extents& x = sources[0].ne;
  const Extents& w = sources[1].ne;
  if (x[3] != 1 || w[0] < 1 || x[0] < w[0]) return Bad("fewer columns than the kernel is wide");
  RETURN_IF_ERROR(NeedExtents(sources, 1, {w[0], x[1], 1, 1}));
  return PackedLayout(DType::kF32, {x[1], x[0] - w[0] + 1, x[2], 1});
}

// Sources: q, k [h, n_k, T, S]; v [h, n_v, T, S]; g [1 or h, n_v, T, S]; beta [1, n_v, T, S]; state
// [h, h, n_v, S]; optional valid I32 [S]. Result [h, n_v, (T + h) * S]: outputs, then the states
// after each sequence's last valid token.
Result GatedDeltaNet(const OpAttributes&, Sources sources) {
  for (int i = 0; i < 6; ++i) RETURN_IF_ERROR(NeedF32Rows(sources, i));
  const Extents& k = sources[1].ne;
  const Extents& v = sources[2].ne;
  RETURN_IF_ERROR(NeedExtents(sources, 0, k));
  if (k[0] != v[0] || k[1] < 1 || v[1] % k[1] != 0 || k[2] != v[2] || k[3] != v[3]) {
    return Bad(absl::StrCat("keys ", ExtentsText(k), " do not fit values ", ExtentsText(v)));
  }
  const int64_t decay = sources[3].ne[0] == 1 ? 1 : v[0];
  RETURN_IF_ERROR(NeedExtents(sources, 3, {decay, v[1], v[2], v[3]}));
  RETURN_IF_ERROR(NeedExtents(sources, 4, {1, v[1], v[2], v[3]}));
  RETURN_IF_ERROR(NeedExtents(sources, 5, {v[0], v[0], v[1], v[3]}));
  if (sources.size() > 6) RETURN_IF_ERROR(NeedVector(sources, 6, DType::kI32, v[3]));
  const std::optional<int64_t> length = CheckedAdd(v[2], v[0]);
  const std::optional<int64_t> rows = length ? CheckedMultiply(*length, v[3]) : std::nullopt;
  if (!rows) return Bad("too long");
  return PackedLayout(DType::kF32, {v[0], v[1], *rows, 1});
}

OpCost AttentionCost(const OpAttributes& attributes, Sources sources, const TensorLayout& result) {
  // Lengths are inputs, so this is the most a step can take: every table entry of one sequence per
  // token.
  const auto& attention = std::get<PagedAttentionAttributes>(attributes);
  const bool own_values = attention.value_dimensions == 0;
  const TensorLayout& q = sources[0];
  const TensorLayout& table = sources[own_values ? 3 : 2];
  int64_t positions = SaturatingMultiply(table.ne[0], kPageTokens);
  if (attention.window_kind != WindowKind::kNone) positions = std::min(positions, attention.window);
  const int64_t page_bytes =
      SaturatingAdd(sources[1].nb[3], own_values ? sources[2].nb[3] : int64_t{0});
  const int64_t pages =
      SaturatingMultiply(positions / kPageTokens + 1, std::min(q.ne[2], table.ne[1]));
  OpCost cost;
  cost.flops =
      SaturatingMultiply(positions, 2 * SaturatingAdd(ElementCount(q), ElementCount(result)));
  cost.bytes_read = SaturatingAdd(SaturatingMultiply(pages, page_bytes), ElementCount(q) * 4);
  cost.bytes_written = ElementCount(result) * 4;
  return cost;
}

}  // namespace weft::infer
