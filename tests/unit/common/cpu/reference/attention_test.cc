#include <algorithm>
#include <cmath>

#include "common/base/random.h"
#include "common/cpu/reference/paged_attention_sources.h"
#include "tests/unit/common/cpu/reference/one_op.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A small case: one KV head of `head` elements, `pages` pages, one sequence with its table.
struct Attention {
  int64_t head = 2;
  int64_t query_heads = 1;
  int64_t pages = 4;
  std::vector<int32_t> table = {2, 1};  // of the one sequence
  std::vector<int32_t> sequence = {0};
  std::vector<int32_t> positions = {0};
  std::vector<float> q;
  std::vector<float> keys;    // per absolute position, `head` each
  std::vector<float> values;  // empty: MLA prefix of the keys
  std::vector<float> sinks;
  std::vector<float> slopes;
  PagedAttentionAttributes attributes;
};

// Rows laid out by the table into pages [head, 16, 1, pages].
std::vector<float> Paged(const Attention& attention, const std::vector<float>& rows) {
  const auto head = static_cast<size_t>(attention.head);
  std::vector<float> pages(head * 16 * static_cast<size_t>(attention.pages), 1e9f);
  for (size_t p = 0; p * head < rows.size(); ++p) {
    const size_t slot = static_cast<size_t>(attention.table[p / 16]) * 16 + p % 16;
    std::copy_n(rows.begin() + static_cast<int64_t>(p * head), head,
                pages.begin() + static_cast<int64_t>(slot * head));
  }
  return pages;
}

absl::StatusOr<std::vector<float>> Attend(const Attention& attention) {
  OneOp op;
  const auto tokens = static_cast<int64_t>(attention.positions.size());
  const Extents pages = {attention.head, kPageTokens, 1, attention.pages};
  const NodeId q = op.F32({attention.head, attention.query_heads, tokens}, attention.q);
  const NodeId keys = op.F32(pages, Paged(attention, attention.keys));
  const NodeId values =
      attention.values.empty() ? kNoNode : op.F32(pages, Paged(attention, attention.values));
  const NodeId table = op.I32({static_cast<int64_t>(attention.table.size()), 1}, attention.table);
  const NodeId sequence = op.I32({tokens}, attention.sequence);
  const NodeId positions = op.I32({tokens}, attention.positions);
  const auto vector = [&](const std::vector<float>& data) {
    return data.empty() ? kNoNode : op.F32({attention.query_heads}, data);
  };
  const NodeId sinks = vector(attention.sinks);
  const NodeId slopes = vector(attention.slopes);
  return op.Run(op.builder.PagedAttention(q, keys, values, table, sequence, positions, sinks,
                                          slopes, attention.attributes));
}

// Keys such that q = 1 scores key i of a head of one element at `scores[i]`; values 10^i.
Attention Scored(std::vector<float> scores) {
  Attention attention;
  attention.head = 1;
  attention.q = {1};
  attention.keys = std::move(scores);
  for (size_t i = 0; i < attention.keys.size(); ++i) {
    attention.values.push_back(static_cast<float>(std::pow(10.0, i)));
  }
  attention.positions = {static_cast<int32_t>(attention.keys.size()) - 1};
  return attention;
}

// Spec M.5: softmax of (1, 2) with sink .5.
TEST(AttentionTest, Sinks_WorkedValues) {
  Attention attention = Scored({1, 2});
  attention.sinks = {0.5f};
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, Attend(attention));
  ExpectNear(y, {.2312239 + 10 * .6285317});
}

TEST(AttentionTest, Sinks_AboveEveryScore_DoNotOverflow) {
  Attention attention = Scored({1, 2});
  attention.sinks = {1000};
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, Attend(attention));
  EXPECT_THAT(y, ElementsAre(0));
}

TEST(AttentionTest, ScaleSoftcapSlope_ComeInThatOrder) {
  Attention attention = Scored({1, 2});
  attention.attributes.scale = 3;
  attention.attributes.softcap = 4;
  attention.slopes = {0.5f};
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, Attend(attention));
  const double first = 4 * std::tanh(3.0 / 4) - 0.5;
  const double second = 4 * std::tanh(6.0 / 4);
  const double weight = 1 / (1 + std::exp(first - second));
  ExpectNear(y, {(1 - weight) + 10 * weight});
}

TEST(AttentionTest, Padding_PositionMinusOne_GivesZeros) {
  Attention attention = Scored({1, 2});
  attention.positions = {-1};
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, Attend(attention));
  EXPECT_THAT(y, ElementsAre(0));
}

TEST(AttentionTest, Causal_SeesNothingAfterItsPosition) {
  Attention attention = Scored({0, 0, 0, 0});
  attention.positions = {1};
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, Attend(attention));
  ExpectNear(y, {(1 + 10) / 2.0});
}

// Spec M.8.
TEST(AttentionTest, Windows_WorkedPositions) {
  PagedAttentionAttributes attributes;
  EXPECT_EQ(reference::FirstVisible(attributes, 10), 0);
  attributes.window = 4;
  attributes.window_kind = WindowKind::kSliding;
  EXPECT_EQ(reference::FirstVisible(attributes, 10), 7);
  EXPECT_EQ(reference::FirstVisible(attributes, 3), 0);
  EXPECT_EQ(reference::FirstVisible(attributes, 4), 1);
  attributes.window_kind = WindowKind::kChunked;
  EXPECT_EQ(reference::FirstVisible(attributes, 10), 8);
  EXPECT_EQ(reference::FirstVisible(attributes, 7), 4);
}

TEST(AttentionTest, SlidingWindow_WeighsOnlyItsKeys) {
  Attention attention = Scored({0, 0, 0, 0});
  attention.attributes.window_kind = WindowKind::kSliding;
  attention.attributes.window = 2;
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, Attend(attention));
  ExpectNear(y, {(100 + 1000) / 2.0}, 1e-3);
}

TEST(AttentionTest, Mla_ValuesArePrefixesOfKeys) {
  Attention attention;
  attention.head = 3;
  attention.q = {0, 0, 0};
  attention.keys = {1, 2, 50, 3, 4, 60};
  attention.positions = {1};
  attention.attributes.value_dimensions = 2;
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, Attend(attention));
  EXPECT_THAT(y, ElementsAre(2, 3));
}

// Two query heads share the KV head; 20 keys lie in two pages out of order.
TEST(AttentionTest, GroupedHeadsOverPages_MatchPlainFormula) {
  constexpr uint64_t kSeed = 21;
  Random random(kSeed);
  Attention attention;
  attention.query_heads = 2;
  attention.positions = {19, 7};
  attention.sequence = {0, 0};
  attention.q.resize(8);
  attention.keys.resize(40);
  attention.values.resize(40);
  for (auto* values : {&attention.q, &attention.keys, &attention.values}) {
    for (float& value : *values) value = static_cast<float>(random.Normal());
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, Attend(attention));
  for (size_t row = 0; row < 4; ++row) {  // token * 2 + head
    const auto keys = static_cast<size_t>(attention.positions[row / 2]) + 1;
    double total = 0, first = 0, second = 0;
    for (size_t p = 0; p < keys; ++p) {
      const double weight = std::exp(attention.q[row * 2] * attention.keys[p * 2] +
                                     attention.q[row * 2 + 1] * attention.keys[p * 2 + 1]);
      total += weight;
      first += weight * attention.values[p * 2];
      second += weight * attention.values[p * 2 + 1];
    }
    EXPECT_NEAR(y[row * 2], first / total, 1e-5);
    EXPECT_NEAR(y[row * 2 + 1], second / total, 1e-5);
  }
}

TEST(AttentionTest, IndicesOutOfRange_AreErrors) {
  const auto expect = [](const Attention& attention, const char* text) {
    EXPECT_THAT(Attend(attention), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  Attention attention = Scored({1, 2});
  Attention far = attention;
  far.positions = {32};
  far.keys.resize(32);
  far.values.resize(32);
  expect(far, "position 32 is not in [0, 32)");
  Attention stranger = attention;
  stranger.sequence = {1};
  expect(stranger, "sequence 1 is not in [0, 1)");
  stranger.sequence = {-1};
  expect(stranger, "sequence -1 is not in [0, 1)");
}

TEST(AttentionTest, PageOutOfRange_IsAnErrorOnlyWhereVisible) {
  const auto attend = [](int32_t page, WindowKind window_kind) {
    OneOp op;
    PagedAttentionAttributes attributes;
    attributes.window_kind = window_kind;
    attributes.window = 4;
    const NodeId pages = op.F32({1, kPageTokens, 1, 2}, std::vector<float>(32, 1.0f));
    return op.Run(op.builder.PagedAttention(op.F32({1, 1, 1}, {1}), pages, pages,
                                            op.I32({2, 1}, {page, 1}), op.I32({1}, {0}),
                                            op.I32({1}, {30}), kNoNode, kNoNode, attributes));
  };
  EXPECT_THAT(attend(2, WindowKind::kNone),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("page 2 is not in [0, 2)")));
  EXPECT_THAT(attend(-1, WindowKind::kNone),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("page -1 is not in [0, 2)")));
  EXPECT_OK(attend(-1, WindowKind::kSliding));
}

TEST(KvStoreTest, Rows_LandInTheirSlotsForEveryHead) {
  OneOp op;
  const NodeId pages = op.Typed(DType::kF16, {2, kPageTokens, 2, 3}, std::vector<float>(192, 0));
  const NodeId rows = op.F32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const NodeId stored = op.builder.KvStore(pages, rows, op.I32({2}, {2 * 16 + 5, 16}));
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, op.Run(stored));
  std::vector<float> want(192, 0);
  const auto put = [&](size_t page, size_t head, size_t place, float a, float b) {
    want[((page * 2 + head) * 16 + place) * 2] = a;
    want[((page * 2 + head) * 16 + place) * 2 + 1] = b;
  };
  put(2, 0, 5, 1, 2);
  put(2, 1, 5, 3, 4);
  put(1, 0, 0, 5, 6);
  put(1, 1, 0, 7, 8);
  EXPECT_EQ(y, want);
}

TEST(KvStoreTest, SlotOutOfRange_IsAnError) {
  for (const int32_t slot : {-1, 32}) {
    OneOp op;
    const NodeId pages = op.F32({1, kPageTokens, 1, 2}, std::vector<float>(32, 0));
    const NodeId stored = op.builder.KvStore(pages, op.F32({1, 1, 1}, {1}), op.I32({1}, {slot}));
    EXPECT_THAT(op.Run(stored),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not in [0, 32)")));
  }
}

}  // namespace
}  // namespace weft
