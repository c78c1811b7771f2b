#include "coordinator/meta/restated_view.h"

#include <algorithm>
#include <array>
#include <map>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/support/test_seed.h"

namespace weft::split {
namespace {

constexpr int64_t kBytes = 4;

using Index = std::array<int64_t, 4>;

// Calls with each index within those extents.
template <typename Visit>
void ForEach(const Extents& ne, const Visit& visit) {
  for (int64_t d = 0; d < ne[3]; ++d) {
    for (int64_t c = 0; c < ne[2]; ++c) {
      for (int64_t b = 0; b < ne[1]; ++b) {
        for (int64_t a = 0; a < ne[0]; ++a) visit(Index{a, b, c, d});
      }
    }
  }
}

int64_t At(const Index& index, const Extents& nb, int64_t offset = 0) {
  for (int d = 0; d < 4; ++d) offset += index[d] * nb[d];
  return offset;
}

// Dimensions in any order in memory, with gaps behind some.
TensorLayout RandomLayout(Random& random, const Extents& ne) {
  TensorLayout layout = *PackedLayout(DType::kF32, ne);
  std::array<int, 4> order = {0, 1, 2, 3};
  for (int i = 3; i > 0; --i) std::swap(order[i], order[random.Between(0, i)]);
  int64_t step = kBytes;
  for (const int d : order) {
    layout.nb[d] = step;
    step *= ne[d];
    if (random.Between(0, 2) == 0) step += kBytes * random.Between(0, 5);
  }
  return layout;
}

// Shows a window, perhaps with every second index, dimensions in any order.
ViewAttributes RandomView(Random& random, const TensorLayout& source) {
  ViewAttributes view;
  std::array<int, 4> order = {0, 1, 2, 3};
  for (int i = 3; i > 0; --i) std::swap(order[i], order[random.Between(0, i)]);
  for (int d = 0; d < 4; ++d) {
    const int of = order[d];
    const int64_t stride = random.Between(1, 2);
    const int64_t begin = random.Between(0, source.ne[of] - 1);
    view.offset += begin * source.nb[of];
    view.ne[d] = random.Between(1, (source.ne[of] - begin - 1) / stride + 1);
    view.nb[d] = stride * source.nb[of];
  }
  return view;
}

TEST(RestatedView, ShowsTheSameElements) {
  Random random(TestSeed(1));
  for (uint64_t i = 0; i < TestCount(2000); ++i) {
    Extents ne;
    for (int64_t& n : ne) n = random.Between(1, 4);
    const TensorLayout from = RandomLayout(random, ne);
    const TensorLayout to =
        random.Between(0, 1) == 0 ? *PackedLayout(DType::kF32, ne) : RandomLayout(random, ne);
    std::map<int64_t, int64_t> moved;  // where an element was, and where it is
    ForEach(ne, [&](const Index& at) { moved[At(at, from.nb)] = At(at, to.nb); });
    const ViewAttributes view = RandomView(random, from);
    const auto restated = RestatedView(view, from, to);
    ASSERT_TRUE(restated.has_value()) << i;
    EXPECT_EQ(restated->ne, view.ne);
    ForEach(view.ne, [&](const Index& at) {
      ASSERT_EQ(At(at, restated->nb, restated->offset), moved.at(At(at, view.nb, view.offset)))
          << i;
    });
  }
}

TEST(RestatedView, OfDimensionsTogether_WhereBothHaveNoGapBetween) {
  // Rows of 4, two of them without a gap, then a gap.
  TensorLayout from = *PackedLayout(DType::kF32, {4, 2, 3, 1});
  from.nb[2] = from.nb[3] = 48;
  const TensorLayout to = *PackedLayout(DType::kF32, {4, 2, 3, 1});
  const ViewAttributes flat = {{8, 3, 1, 1}, {4, 48, 144, 144}, 0};
  const auto restated = RestatedView(flat, from, to);
  ASSERT_TRUE(restated.has_value());
  EXPECT_EQ(restated->nb[1], 32);
  // Into the gap, and over it.
  EXPECT_FALSE(RestatedView({{12, 1, 1, 1}, {4, 4, 4, 4}, 0}, from, to).has_value());
  EXPECT_FALSE(RestatedView({{2, 1, 1, 1}, {4, 4, 4, 4}, 28}, from, to).has_value());
  EXPECT_FALSE(RestatedView({{1, 1, 1, 1}, {4, 4, 4, 4}, 40}, from, to).has_value());
  EXPECT_FALSE(RestatedView({{1, 1, 1, 1}, {4, 4, 4, 4}, 2}, from, to).has_value());
}

}  // namespace
}  // namespace weft::split
