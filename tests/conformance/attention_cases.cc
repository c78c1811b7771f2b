#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "tests/conformance/op_cases.h"

namespace weft {
namespace {

std::vector<int32_t> Range(int32_t first, int32_t last) {
  std::vector<int32_t> values(static_cast<size_t>(last - first + 1));
  std::iota(values.begin(), values.end(), first);
  return values;
}

void AddRope(uint64_t seed, std::vector<OpCase>& cases) {
  for (const RopeKind kind :
       {RopeKind::kAdjacent, RopeKind::kHalf, RopeKind::kSections, RopeKind::kInterleaved}) {
    for (const int32_t dimensions : {2, 20, 64}) {
      for (const bool yarn : {false, true}) {
        CaseBuilder builder(++seed);
        RopeAttributes attributes{kind, dimensions};
        attributes.sections = {3, 2, 4, 1};
        attributes.frequency_scale = yarn ? 0.25f : 1;
        attributes.extrapolation = yarn ? 1 : 0;
        attributes.original_context = 4096;
        attributes.attention_factor = 0.9f;
        const bool sections = kind == RopeKind::kSections || kind == RopeKind::kInterleaved;
        const NodeId x = builder.Normal({64, 3, 7, 1});
        const NodeId positions = builder.Integers({sections ? 28 : 7, 1, 1, 1}, -1, 100000);
        const NodeId factors = yarn ? kNoNode : builder.Uniform({dimensions / 2, 1, 1, 1}, 1, 8);
        const NodeId result = builder.builder().Rope(x, positions, factors, attributes);
        cases.push_back(std::move(builder).Finish(
            absl::StrCat("rope ", static_cast<int>(kind), " of ", dimensions, " yarn ", yarn),
            result, kFewRoundings));
      }
    }
  }
  CaseBuilder builder(++seed);
  const NodeId turned = builder.builder().Permute(builder.Normal({80, 50, 9, 1}), {0, 2, 1, 3});
  const NodeId result = builder.builder().Rope(turned, builder.Integers({50, 1, 1, 1}, 0, 999),
                                               kNoNode, {RopeKind::kHalf, 80});
  cases.push_back(std::move(builder).Finish("rope permuted", result, kFewRoundings));
}

void AddVariants(uint64_t seed, std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& name, const AttentionShape& shape) {
    cases.push_back(AttentionCase(absl::StrCat("attention ", name), shape, ++seed));
  };
  add("one key", {.positions = {0}});
  add("prompt", {.heads = 4, .kv_heads = 2, .positions = Range(0, 30)});
  add("none", {.positions = {}});
  add("padding", {.positions = {4, -1, 31, -1}});
  add("decode over chunks",
      {.heads = 8, .kv_heads = 2, .positions = {1029}, .pages_per_sequence = 66});
  add("prompt over chunks", {.head = 64,
                             .value_head = 64,
                             .heads = 6,
                             .kv_heads = 2,
                             .positions = Range(500, 530),
                             .pages_per_sequence = 34});
  add("sequences", {.heads = 3,
                    .positions = {3, 300, 17, 9, 255, 256},
                    .sequences = 3,
                    .pages_per_sequence = 20});
  add("odd head", {.head = 7, .value_head = 5, .positions = {40}, .pages_per_sequence = 3});
  add("sinks", {.heads = 4, .positions = {3, 290}, .pages_per_sequence = 20, .sinks = true});
  add("slopes", {.heads = 4, .positions = {3, 290}, .pages_per_sequence = 20, .slopes = true});
  add("softcap", {.positions = {20}, .attributes = {.scale = 0.5f, .softcap = 3}});
  for (const WindowKind kind : {WindowKind::kSliding, WindowKind::kChunked}) {
    for (const int64_t window : {int64_t{1}, int64_t{4}, int64_t{300}, int64_t{1} << 62}) {
      add(absl::StrCat("window ", static_cast<int>(kind), " of ", window),
          {.positions = {0, 3, 4, 255, 256, 600},
           .pages_per_sequence = 40,
           .attributes = {.window_kind = kind, .window = window}});
    }
  }
  // Parts of the heads of a model: 5 of 8 queries, from the middle of a group of 4 on, and 3
  // within.
  add("part of the heads", {.heads = 5,
                            .kv_heads = 2,
                            .positions = {3, 300, 40},
                            .pages_per_sequence = 20,
                            .sinks = true,
                            .slopes = true,
                            .attributes = {.heads_per_kv = 4, .head_offset = 3}});
  add("part of a group", {.heads = 3,
                          .kv_heads = 1,
                          .positions = Range(500, 530),
                          .pages_per_sequence = 34,
                          .attributes = {.heads_per_kv = 8, .head_offset = 2}});
  add("all at once",
      {.head = 32,
       .value_head = 64,
       .heads = 4,
       .kv_heads = 2,
       .positions = {-1, 2, 260, 700},
       .sequences = 2,
       .pages_per_sequence = 50,
       .keys = DType::kF16,
       .values = DType::kQ8_0,
       .sinks = true,
       .slopes = true,
       .attributes = {
           .scale = 0.2f, .softcap = 5, .window_kind = WindowKind::kSliding, .window = 280}});
}

void AddTypes(uint64_t seed, std::vector<OpCase>& cases) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    AttentionShape shape;
    shape.head = shape.value_head = 64;
    shape.heads = 4;
    shape.kv_heads = 2;
    shape.positions = {10, 50, 33};
    shape.pages_per_sequence = 4;
    shape.keys = shape.values = dtype;
    shape.attributes.scale = 0.125f;
    cases.push_back(
        AttentionCase(absl::StrCat("attention ", AbslView(DTypeName(dtype))), shape, ++seed));
    shape.prefix = true;
    shape.value_head = 32;
    shape.kv_heads = 1;
    cases.push_back(
        AttentionCase(absl::StrCat("attention MLA ", AbslView(DTypeName(dtype))), shape, ++seed));
  }
}

}  // namespace

OpCase AttentionCase(std::string name, const AttentionShape& shape, uint64_t seed) {
  CaseBuilder builder(seed);
  const auto tokens = static_cast<int64_t>(shape.positions.size());
  const int64_t entries = shape.pages_per_sequence * shape.sequences;
  const NodeId q = builder.Normal({shape.head, shape.heads, tokens, 1});
  const NodeId keys =
      builder.Normal({shape.head, kPageTokens, shape.kv_heads, entries + 1}, shape.keys);
  const NodeId values =
      shape.prefix ? kNoNode
                   : builder.Normal({shape.value_head, kPageTokens, shape.kv_heads, entries + 1},
                                    shape.values);
  // Every page but page 0 once, in random order.
  std::vector<int32_t> table(static_cast<size_t>(entries));
  std::iota(table.begin(), table.end(), 1);
  for (size_t i = table.size(); i > 1; --i) {
    std::swap(table[i - 1],
              table[static_cast<size_t>(builder.random().Between(0, static_cast<int64_t>(i) - 1))]);
  }
  const NodeId pages = builder.Integers({shape.pages_per_sequence, shape.sequences, 1, 1}, table);
  std::vector<int32_t> sequence(shape.positions.size());
  for (size_t i = 0; i < sequence.size(); ++i) {
    sequence[i] = static_cast<int32_t>(static_cast<int64_t>(i) % shape.sequences);
  }
  const NodeId of = builder.Integers({tokens, 1, 1, 1}, sequence);
  const NodeId positions = builder.Integers({tokens, 1, 1, 1}, shape.positions);
  const NodeId sinks = shape.sinks ? builder.Normal({shape.heads, 1, 1, 1}) : kNoNode;
  const NodeId slopes =
      shape.slopes ? builder.Uniform({shape.heads, 1, 1, 1}, 0.01f, 0.5f) : kNoNode;
  PagedAttentionAttributes attributes = shape.attributes;
  if (shape.prefix) attributes.value_dimensions = shape.value_head;
  const NodeId result = builder.builder().PagedAttention(q, keys, values, pages, of, positions,
                                                         sinks, slopes, attributes);
  return std::move(builder).Finish(std::move(name), result, kAttention);
}

std::vector<OpCase> AttentionCases(uint64_t seed) {
  std::vector<OpCase> cases;
  AddRope(seed += 100, cases);
  AddVariants(seed += 100, cases);
  AddTypes(seed += 100, cases);
  return cases;
}

}  // namespace weft
