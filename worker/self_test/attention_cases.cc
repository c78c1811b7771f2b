#include <numeric>

#include "worker/self_test/test_cases.h"

namespace weft::self_test {
namespace {

void AddRope(RopeKind kind, std::vector<TestCase>& cases) {
  const bool sections = kind == RopeKind::kSections || kind == RopeKind::kInterleaved;
  std::vector<int32_t> positions(sections ? 16 : 4);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int32_t>(i * i * 30);
  RopeAttributes attributes{kind, 20};
  attributes.sections = {3, 2, 4, 1};
  const auto rope = [&](CaseBuilder& builder, NodeId x, NodeId factors) {
    const auto count = static_cast<int64_t>(positions.size());
    const NodeId at = builder.Integers({count, 1, 1, 1}, positions);
    return builder.graph().Rope(x, at, factors, attributes);
  };
  AddCase(cases, kRowSums, [&](CaseBuilder& builder) {
    const NodeId x = builder.Values({32, 3, 4, 1});
    return rope(builder, x, kNoNode);
  });
  AddCase(cases, kRowSums, [&](CaseBuilder& builder) {
    const NodeId x = builder.graph().Permute(builder.Values({32, 4, 3, 1}), {0, 2, 1, 3});
    return rope(builder, x, builder.Between({10, 1, 1, 1}, 1, 8));
  });
  attributes.frequency_scale = 0.25f;
  attributes.extrapolation = 1;
  attributes.original_context = 4096;
  attributes.attention_factor = 0.9f;
  AddCase(cases, kRowSums, [&](CaseBuilder& builder) {
    const NodeId x = builder.Values({32, 3, 4, 1});
    return rope(builder, x, kNoNode);
  });
}

void AddStore(DType dtype, std::vector<TestCase>& cases) {
  AddCase(cases, kExact, [&](CaseBuilder& builder) {
    const NodeId pages = builder.Pages({64, kPageTokens, 2, 3}, dtype);
    const NodeId rows = builder.Values({64, 2, 4, 1});
    const NodeId slots = builder.Integers({4, 1, 1, 1}, {17, 47, 2, 33});
    return builder.graph().KvStore(pages, rows, slots);
  });
}

struct Attention {
  DType keys = DType::kF16;
  DType values = DType::kF16;
  std::vector<int32_t> positions = {20, 3};  // of one token each, -1 for padding
  int64_t pages = 3;                         // of each sequence; token i is of sequence i % 2
  bool prefix = false;                       // values are the first half of the keys (MLA)
  bool sinks = false;
  bool slopes = false;
  PagedAttentionAttributes attributes = {.scale = 0.125f};
};

void AddAttention(const Attention& shape, std::vector<TestCase>& cases) {
  constexpr int64_t kHead = 64;
  constexpr int64_t kHeads = 4;
  constexpr int64_t kSequences = 2;
  AddCase(cases, kAttention, [&](CaseBuilder& builder) {
    const auto tokens = static_cast<int64_t>(shape.positions.size());
    const int64_t entries = shape.pages * kSequences;
    const int64_t kv_heads = shape.prefix ? 1 : 2;
    const Extents ne = {kHead, kPageTokens, kv_heads, entries + 1};
    const NodeId q = builder.Values({kHead, kHeads, tokens, 1});
    const NodeId keys = builder.Pages(ne, shape.keys);
    const NodeId values = shape.prefix ? kNoNode : builder.Pages(ne, shape.values);
    std::vector<int32_t> ids(static_cast<size_t>(entries));
    std::iota(ids.rbegin(), ids.rend(), 1);  // every page but page 0, backwards
    const NodeId table = builder.Table({shape.pages, kSequences, 1, 1}, ids);
    std::vector<int32_t> of(shape.positions.size());
    for (size_t i = 0; i < of.size(); ++i) of[i] = static_cast<int32_t>(i % 2);
    const NodeId sequence = builder.Integers({tokens, 1, 1, 1}, of);
    const NodeId positions = builder.Integers({tokens, 1, 1, 1}, shape.positions);
    const NodeId sinks = shape.sinks ? builder.Weights({kHeads, 1, 1, 1}) : kNoNode;
    const NodeId slopes = shape.slopes ? builder.Between({kHeads, 1, 1, 1}, 0.01f, 0.5f) : kNoNode;
    PagedAttentionAttributes attributes = shape.attributes;
    attributes.value_dimensions = shape.prefix ? kHead / 2 : 0;
    return builder.graph().PagedAttention(q, keys, values, table, sequence, positions, sinks,
                                          slopes, attributes);
  });
}

void AddVariants(std::vector<TestCase>& cases) {
  AddAttention({.positions = {2, 30, -1, 17}}, cases);
  AddAttention({.keys = DType::kF16, .values = DType::kQ8_0}, cases);
  // Longer than the pieces into which kernels cut the positions.
  AddAttention({.positions = {270, 5}, .pages = 17}, cases);
  AddAttention({.sinks = true}, cases);
  AddAttention({.slopes = true}, cases);
  AddAttention({.attributes = {.scale = 0.125f, .softcap = 3}}, cases);
  for (const WindowKind kind : {WindowKind::kSliding, WindowKind::kChunked}) {
    AddAttention({.positions = {40, 7, 8, 9},
                  .attributes = {.scale = 0.125f, .window_kind = kind, .window = 9}},
                 cases);
  }
}

}  // namespace

void AddAttentionCases(std::vector<TestCase>& cases) {
  for (const RopeKind kind :
       {RopeKind::kAdjacent, RopeKind::kHalf, RopeKind::kSections, RopeKind::kInterleaved}) {
    AddRope(kind, cases);
  }
  // Types whose blocks fit into the rows of heads that are common.
  for (const DTypeInfo& info : AllDTypes()) {
    if (!info.codec || info.block_elements > 32) continue;
    AddStore(info.dtype, cases);
    AddAttention({.keys = info.dtype, .values = info.dtype}, cases);
    AddAttention({.keys = info.dtype, .prefix = true}, cases);
  }
  AddVariants(cases);
}

}  // namespace weft::self_test
