// The op table is complete and consistent with itself.
#include <set>
#include <string>

#include "common/graph/op.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(OpTable, Rows_AreNamedOnceAndInOrder) {
  std::set<std::string_view> names;
  ASSERT_EQ(AllOps().size(), static_cast<size_t>(kOpCount));
  for (int i = 0; i < kOpCount; ++i) {
    const OpInfo& info = AllOps()[i];
    EXPECT_EQ(static_cast<int>(info.op), i);
    EXPECT_FALSE(info.name.empty());
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_LE(info.min_sources, info.max_sources) << info.name;
    EXPECT_LE(info.max_sources, kMaxSources) << info.name;
    EXPECT_LT(static_cast<size_t>(info.attributes), std::variant_size_v<OpAttributes>) << info.name;
  }
}

TEST(OpTable, Views_ShareOneSourceAndNeverRunInPlace) {
  for (const OpInfo& info : AllOps()) {
    if (info.is_view) {
      EXPECT_EQ(info.min_sources, 1) << info.name;
      EXPECT_EQ(info.max_sources, 1) << info.name;
    }
    EXPECT_LE(info.is_view + info.in_place + info.writes_source, 1) << info.name;
    const bool needs_source = info.in_place || info.writes_source;
    EXPECT_GE(info.min_sources, needs_source ? 1 : 0) << info.name;
  }
}

// Whatever the op: too few, too many and foreign attributes are errors, never a crash.
TEST(OpTable, EveryOp_RefusesWrongArityAndAttributes) {
  const TensorLayout layout = *PackedLayout(DType::kF32, {4, 2, 1, 1});
  for (const OpInfo& info : AllOps()) {
    for (int count = 0; count <= kMaxSources; ++count) {
      if (count >= info.min_sources && count <= info.max_sources) continue;
      const std::vector<TensorLayout> sources(static_cast<size_t>(count), layout);
      EXPECT_THAT(InferResult(info.op, TriangleAttributes{}, sources),
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sources, want")))
          << info.name;
    }
    const std::vector<TensorLayout> sources(static_cast<size_t>(info.min_sources), layout);
    const OpAttributes foreign =
        info.op == Op::kTopK ? OpAttributes(TriangleAttributes{}) : OpAttributes(TopKAttributes{});
    EXPECT_THAT(InferResult(info.op, foreign, sources),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("attributes of another op")))
        << info.name;
  }
}

TEST(OpTable, RunsOnDevice_LeavesOutLeafsViewsAndWhatCommandsDo) {
  for (const OpInfo& info : AllOps()) {
    const bool other =
        info.op == Op::kLeaf || info.is_view || info.op == Op::kReceive || IsCollective(info.op);
    EXPECT_EQ(RunsOnDevice(info.op), !other) << info.name;
  }
}

TEST(OpTable, Kinds_HaveNames) {
  std::set<std::string_view> names;
  for (int i = 0; i < kUnaryKindCount; ++i) names.insert(UnaryName(static_cast<UnaryKind>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kUnaryKindCount));
  EXPECT_EQ(UnaryName(UnaryKind::kCos), "cos");
  EXPECT_EQ(GluName(GluKind::kSwigluOai), "swiglu_oai");
}

}  // namespace
}  // namespace weft
