#include "common/cpu/reference/paged_attention_sources.h"

#include "common/base/status_macros.h"

namespace weft::reference {

AttentionSources::AttentionSources(const PagedAttentionAttributes& attributes)
    : values(attributes.value_dimensions == 0 ? 2 : 1),
      table(values + 1),
      sequence(table + 1),
      positions(table + 2),
      sinks(attributes.has_sinks ? table + 3 : -1),
      slopes(attributes.has_slopes ? table + 3 + (attributes.has_sinks ? 1 : 0) : -1) {}

int64_t FirstVisible(const PagedAttentionAttributes& attributes, int64_t position) {
  switch (attributes.window_kind) {
    case WindowKind::kNone:
      return 0;
    case WindowKind::kSliding:
      return attributes.window > position ? 0 : position - attributes.window + 1;
    case WindowKind::kChunked:
      return position - position % attributes.window;
  }
  return 0;
}

absl::Status ReadPagedRow(const Operands& operands, const AttentionSources& from,
                          const HostTensor& pages, int64_t token, int64_t kv_head, int64_t position,
                          std::vector<float>& row) {
  const HostTensor& table = operands.source(from.table);
  const int64_t sequence = operands.source(from.sequence).I32(token);
  RETURN_IF_ERROR(CheckIndex("sequence", sequence, table.extent(1)));
  RETURN_IF_ERROR(CheckIndex("position", position, table.extent(0) * kPageTokens));
  const int64_t page = table.I32(position / kPageTokens, sequence);
  RETURN_IF_ERROR(CheckIndex("page", page, pages.extent(3)));
  return ReadRow(pages, position % kPageTokens, kv_head, page, row);
}

}  // namespace weft::reference
