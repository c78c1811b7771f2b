// The shape rules of rope, paged attention and the recurrent ops.
#include <limits>

#include "gtest/gtest.h"
#include "tests/unit/common/graph/shape_rules_check.h"

namespace weft {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

RopeAttributes Rope(void (*change)(RopeAttributes&)) {
  RopeAttributes rope;
  rope.dimensions = 4;
  change(rope);
  return rope;
}

TEST(AttentionRules, Rope) {
  const auto plain = Rope([](RopeAttributes&) {});
  const std::vector<TensorLayout> sources = {F32(6, 2, 3), I32(3)};
  CheckShapes({
      {Op::kRope, plain, sources, "F32 [6, 2, 3]"},
      {Op::kRope, plain, {F32(6, 2, 3), I32(3), F32(2)}, "F32 [6, 2, 3]"},
      {Op::kRope, plain, {F32(6, 2, 3), I32(3), F32(3)}, "want extents [2]"},
      {Op::kRope, plain, {F32(6, 2, 3), I32(4)}, "want extents [3]"},
      {Op::kRope, plain, {F32(6, 2, 3), F32(3)}, "want I32"},
      {Op::kRope, plain, {F32(6, 2, 3, 2), I32(3)}, "too many tokens"},
      {Op::kRope, Rope([](RopeAttributes& r) { r.dimensions = 3; }), sources, "rotates 3"},
      {Op::kRope, Rope([](RopeAttributes& r) { r.dimensions = 8; }), sources, "rotates 8 of 6"},
      {Op::kRope, Rope([](RopeAttributes& r) { r.dimensions = 0; }), sources, "rotates 0"},
      {Op::kRope, Rope([](RopeAttributes& r) { r.kind = static_cast<RopeKind>(4); }), sources,
       "unknown kind"},
      {Op::kRope, Rope([](RopeAttributes& r) { r.base = 0; }), sources, "must be > 0"},
      {Op::kRope, Rope([](RopeAttributes& r) { r.base = kNan; }), sources, "not finite"},
      {Op::kRope, Rope([](RopeAttributes& r) { r.beta_slow = kNan; }), sources, "not finite"},
      {Op::kRope, Rope([](RopeAttributes& r) { r.extrapolation = 1; }), sources, "context of 0"},
      {Op::kRope,
       Rope([](RopeAttributes& r) { r.kind = RopeKind::kSections; }),
       {F32(6, 2, 3), I32(12)},
       "sections are empty"},
      {Op::kRope,
       Rope([](RopeAttributes& r) {
         r.kind = RopeKind::kSections;
         r.sections = {1, 1, 0, 0};
       }),
       {F32(6, 2, 3), I32(12)},
       "F32 [6, 2, 3]"},
      {Op::kRope,
       Rope([](RopeAttributes& r) {
         r.kind = RopeKind::kInterleaved;
         r.sections = {2, -1, 0, 0};
       }),
       {F32(6, 2, 3), I32(12)},
       "negative section"},
  });
}

TEST(AttentionRules, KvStore) {
  CheckShapes({
      {Op::kKvStore, {}, {F32(8, 16, 2, 5), F32(8, 2, 3), I32(3)}, "F32 [8, 16, 2, 5]"},
      {Op::kKvStore, {}, {Of(DType::kQ8_0, 32, 16, 2, 5), F32(32, 2, 3), I32(3)}, "Q8_0"},
      {Op::kKvStore, {}, {F32(8, 8, 2, 5), F32(8, 2, 3), I32(3)}, "pages of 16 tokens"},
      {Op::kKvStore, {}, {I32(8, 16, 2, 5), F32(8, 2, 3), I32(3)}, "pages of 16 tokens"},
      {Op::kKvStore, {}, {F32(8, 16, 2, 5), F32(8, 1, 3), I32(3)}, "want extents"},
      {Op::kKvStore, {}, {F32(8, 16, 2, 5), F32(8, 2, 3), I32(4)}, "want extents [3]"},
  });
}

PagedAttentionAttributes Attention(void (*change)(PagedAttentionAttributes&)) {
  PagedAttentionAttributes attention;
  change(attention);
  return attention;
}

TEST(AttentionRules, PagedAttention) {
  const auto plain = Attention([](PagedAttentionAttributes&) {});
  const TensorLayout q = F32(8, 4, 3);
  const TensorLayout k = F32(8, 16, 2, 5);
  const TensorLayout v = F32(6, 16, 2, 5);
  const TensorLayout table = I32(4, 2);
  const std::vector<TensorLayout> sources = {q, k, v, table, I32(3), I32(3)};
  const auto prefix = Attention([](PagedAttentionAttributes& a) { a.value_dimensions = 4; });
  const auto sinks = Attention([](PagedAttentionAttributes& a) { a.has_sinks = true; });
  CheckShapes({
      {Op::kPagedAttention, plain, sources, "F32 [6, 4, 3]"},
      {Op::kPagedAttention, prefix, {q, k, table, I32(3), I32(3)}, "F32 [4, 4, 3]"},
      {Op::kPagedAttention, prefix, sources, "its attributes want 5"},
      {Op::kPagedAttention, sinks, sources, "its attributes want 7"},
      {Op::kPagedAttention, sinks, {q, k, v, table, I32(3), I32(3), F32(4)}, "F32 [6, 4, 3]"},
      {Op::kPagedAttention, sinks, {q, k, v, table, I32(3), I32(3), F32(3)}, "want extents [4]"},
      {Op::kPagedAttention, plain, {F32(8, 3, 3), k, v, table, I32(3), I32(3)}, "do not fit pages"},
      {Op::kPagedAttention, plain, {F32(7, 4, 3), k, v, table, I32(3), I32(3)}, "do not fit pages"},
      {Op::kPagedAttention, plain, {q, k, F32(6, 16, 2, 4), table, I32(3), I32(3)}, "want extents"},
      {Op::kPagedAttention, plain, {q, k, v, F32(4, 2), I32(3), I32(3)}, "want I32"},
      {Op::kPagedAttention, plain, {q, k, v, I32(4, 2, 2), I32(3), I32(3)}, "page table"},
      {Op::kPagedAttention, plain, {q, k, v, table, I32(2), I32(3)}, "want extents [3]"},
      {Op::kPagedAttention, plain, {q, k, v, table, I32(3), I32(2)}, "want extents [3]"},
      {Op::kPagedAttention, Attention([](PagedAttentionAttributes& a) { a.scale = kNan; }), sources,
       "not finite"},
      {Op::kPagedAttention, Attention([](PagedAttentionAttributes& a) { a.softcap = -1; }), sources,
       "softcap -1"},
      {Op::kPagedAttention,
       Attention([](PagedAttentionAttributes& a) { a.window_kind = WindowKind::kSliding; }),
       sources, "window 0"},
      {Op::kPagedAttention, Attention([](PagedAttentionAttributes& a) {
         a.window_kind = static_cast<WindowKind>(3);
         a.window = 4;
       }),
       sources, "window 4"},
      {Op::kPagedAttention,
       Attention([](PagedAttentionAttributes& a) { a.value_dimensions = 9; }),
       {q, k, table, I32(3), I32(3)},
       "value prefix 9"},
      {Op::kPagedAttention,
       Attention([](PagedAttentionAttributes& a) { a.value_dimensions = -1; }),
       {q, k, table, I32(3), I32(3)},
       "value prefix -1"},
      {Op::kPagedAttention,
       prefix,
       {F32(32, 4, 3), Of(DType::kQ8_0, 32, 16, 2, 5), table, I32(3), I32(3)},
       "value prefix 4"},
  });
}

TEST(AttentionRules, Recurrent) {
  const auto delta = [](int64_t decay, int64_t valid) {
    std::vector<TensorLayout> sources = {F32(4, 2, 3, 2),     F32(4, 2, 3, 2), F32(4, 4, 3, 2),
                                         F32(decay, 4, 3, 2), F32(1, 4, 3, 2), F32(4, 4, 4, 2)};
    if (valid > 0) sources.push_back(I32(valid));
    return sources;
  };
  std::vector<TensorLayout> bad_state = delta(1, 0);
  bad_state[5] = F32(4, 4, 4, 1);
  std::vector<TensorLayout> bad_heads = delta(1, 0);
  bad_heads[0] = bad_heads[1] = F32(4, 3, 3, 2);
  CheckShapes({
      {Op::kSsmConv, {}, {F32(6, 5, 2), F32(4, 5)}, "F32 [5, 3, 2]"},
      {Op::kSsmConv, {}, {F32(3, 5, 2), F32(4, 5)}, "fewer columns"},
      {Op::kSsmConv, {}, {F32(6, 5, 2), F32(4, 4)}, "want extents"},
      {Op::kGatedDeltaNet, {}, delta(1, 0), "F32 [4, 4, 14]"},
      {Op::kGatedDeltaNet, {}, delta(4, 2), "F32 [4, 4, 14]"},
      {Op::kGatedDeltaNet, {}, delta(2, 0), "want extents"},
      {Op::kGatedDeltaNet, {}, delta(1, 3), "want extents [2]"},
      {Op::kGatedDeltaNet, {}, bad_state, "want extents"},
      {Op::kGatedDeltaNet, {}, bad_heads, "do not fit values"},
  });
}

}  // namespace
}  // namespace weft
