#include <cmath>
#include <numeric>

#include "common/cpu/reference/rope_angles.h"
#include "tests/unit/common/cpu/reference/one_op.h"

namespace weft {
namespace {

// Rotates one row of one token; empty `factors` for none.
std::vector<float> Rotate(const RopeAttributes& attributes, std::vector<float> x,
                          std::vector<int32_t> positions, std::vector<float> factors = {}) {
  OneOp op;
  const auto head = static_cast<int64_t>(x.size());
  const NodeId row = op.F32({head, 1, 1}, std::move(x));
  const auto count = static_cast<int64_t>(positions.size());
  const NodeId at = op.I32({count}, std::move(positions));
  const auto pairs = static_cast<int64_t>(factors.size());
  const NodeId divisors = pairs == 0 ? kNoNode : op.F32({pairs}, std::move(factors));
  const absl::StatusOr<std::vector<float>> y =
      op.Run(op.builder.Rope(row, at, divisors, attributes));
  EXPECT_OK(y);
  return y.ok() ? *y : std::vector<float>();
}

std::vector<float> OneToEight() { return {1, 2, 3, 4, 5, 6, 7, 8}; }

// Spec M.1.
TEST(RopeTest, Adjacent_WorkedValues) {
  ExpectNear(Rotate({RopeKind::kAdjacent, 8}, OneToEight(), {3}),
             {-1.27223, -1.83886, 1.68393, 4.70791, 4.81778, 6.14728, 6.97597, 8.02096});
}

TEST(RopeTest, Half_WorkedValues) {
  ExpectNear(Rotate({RopeKind::kHalf, 8}, OneToEight(), {3}),
             {-1.69559, 0.13755, 2.78868, 3.97598, -4.80884, 6.32306, 7.08684, 8.01196});
}

TEST(RopeTest, HalfPartial_WorkedValuesAndCopiedRest) {
  ExpectNear(Rotate({RopeKind::kHalf, 4}, OneToEight(), {3}),
             {-1.41335, 1.87912, -2.82886, 4.05819, 5, 6, 7, 8});
}

RopeAttributes WorkedYarn() {
  RopeAttributes yarn;
  yarn.kind = RopeKind::kHalf;
  yarn.dimensions = 64;
  yarn.base = 150000;
  yarn.frequency_scale = 1.0f / 32;
  yarn.extrapolation = 1;
  yarn.original_context = 4096;
  // get(f, 1) / (1 + 0.1 ln f) = 1 (spec G.1), so the op's own factor is the whole magnitude.
  yarn.attention_factor = 1;
  return yarn;
}

TEST(RopeTest, Yarn_WorkedValues) {
  std::vector<float> x(64, 0.0f);
  x[0] = 1;
  const std::vector<float> y = Rotate(WorkedYarn(), x, {1});
  EXPECT_NEAR(RopeAngles(WorkedYarn()).magnitude(), 1.3465736, 1e-6);
  EXPECT_NEAR(y[0], 0.7275568, 1e-6);
  EXPECT_NEAR(y[32], 1.1331026, 1e-6);
}

// low = 8 and high = 18 in the worked example: below them the frequency is the plain one, above it
// is the scaled one, between it is mixed.
TEST(RopeTest, Yarn_RampStandsBetweenLowAndHigh) {
  const RopeAngles angles(WorkedYarn());
  const auto plain = [](int64_t pair) {
    return std::pow(150000.0, -2.0 * static_cast<double>(pair) / 64);
  };
  EXPECT_NEAR(angles.Frequency(8, 1) / plain(8), 1, 1e-12);
  EXPECT_LT(angles.Frequency(9, 1) / plain(9), 1 - 0.05);
  EXPECT_NEAR(angles.Frequency(13, 1) / plain(13), 0.5 + 0.5 / 32, 1e-12);
  EXPECT_GT(angles.Frequency(17, 1) / plain(17), 1.0 / 32 + 0.05);
  EXPECT_NEAR(angles.Frequency(18, 1) / plain(18), 1.0 / 32, 1e-12);
}

TEST(RopeTest, FactorsAndScale_DivideAndMultiplyTheAngle) {
  RopeAttributes attributes{RopeKind::kAdjacent, 4};
  attributes.base = 100;
  attributes.frequency_scale = 0.5f;
  attributes.attention_factor = 2;
  const std::vector<float> y = Rotate(attributes, {1, 0, 1, 0}, {6}, {1, 4});
  const double second = 6 * std::pow(100.0, -0.5) / 4 * 0.5;
  ExpectNear(y, {2 * std::cos(3.0), 2 * std::sin(3.0), 2 * std::cos(second), 2 * std::sin(second)});
}

TEST(RopeTest, Sections_ConsecutiveAndInterleaved_ChooseThePosition) {
  RopeAttributes attributes;
  attributes.dimensions = 12;
  attributes.sections = {1, 2, 2, 1};
  attributes.kind = RopeKind::kSections;
  const RopeAngles consecutive(attributes);
  const int want_consecutive[] = {0, 1, 1, 2, 2, 3, 0};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(consecutive.PositionIndex(i), want_consecutive[i]) << i;
  attributes.kind = RopeKind::kInterleaved;
  const RopeAngles interleaved(attributes);
  // 0 time; 1 and 4 height (below 6); 2 and 5 width (below 6); 3 is beyond the one time pair:
  // extra.
  const int want_interleaved[] = {0, 1, 2, 3, 1, 2, 0};
  for (int i = 0; i < 7; ++i) EXPECT_EQ(interleaved.PositionIndex(i), want_interleaved[i]) << i;
}

TEST(RopeTest, Interleaved_TextPositions_EqualHalf) {
  std::vector<float> x(64);
  std::iota(x.begin(), x.end(), -20.0f);
  RopeAttributes attributes{RopeKind::kInterleaved, 64};
  attributes.sections = {11, 11, 10, 0};
  const std::vector<float> text = Rotate(attributes, x, {5, 5, 5, 0});
  const std::vector<float> half = Rotate({RopeKind::kHalf, 64}, x, {5});
  EXPECT_EQ(text, half);
}

TEST(RopeTest, Sections_PositionsAreFourArraysOfTokens) {
  OneOp op;
  RopeAttributes attributes{RopeKind::kSections, 4};
  attributes.base = 1;  // every pair turns by its position
  attributes.sections = {1, 1, 0, 0};
  const NodeId x = op.F32({4, 1, 2}, {1, 1, 0, 0, 1, 1, 0, 0});
  const NodeId at = op.I32({8}, {1, 2, 3, 4, 0, 0, 0, 0});
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y,
                       op.Run(op.builder.Rope(x, at, kNoNode, attributes)));
  ExpectNear(y, {std::cos(1.0), std::cos(3.0), std::sin(1.0), std::sin(3.0), std::cos(2.0),
                 std::cos(4.0), std::sin(2.0), std::sin(4.0)});
}

}  // namespace
}  // namespace weft
