#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/conformance/op_cases.h"

namespace weft {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows of which some have many equal logits, some have infinite ones, and the last has NaNs.
std::vector<float> Logits(Random& random, int64_t n, int64_t rows) {
  std::vector<float> logits;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < n; ++i) {
      auto x = static_cast<float>(4 * random.Normal());
      if (row % 4 == 1) x = std::round(x);
      if (row % 4 == 2 && random.Between(0, 2) == 0) x = -kInfinity;
      if (row % 8 == 6 && random.Between(0, 9) == 0) x = kInfinity;
      if (rows > 1 && row + 1 == rows && random.Between(0, n / 2) == 0) x = std::nanf("");
      logits.push_back(x);
    }
  }
  return logits;
}

// Ids of the row, some twice, some of other parts of the vocabulary, and padding.
std::vector<int32_t> Changed(Random& random, int64_t n, int64_t first, int64_t count) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    const bool again = i > 0 && random.Between(0, 9) == 0;
    ids.push_back(again ? ids.back() : static_cast<int32_t>(first + random.Between(-3, n + 2)));
    if (random.Between(0, 9) == 0) ids.back() = -1;
  }
  return ids;
}

struct Shape {
  int64_t n;
  int64_t rows;
  int32_t k;
  int32_t first;
  int64_t changed;  // -1: no such source
};

OpCase CandidateCase(const Shape& s, uint64_t seed) {
  CaseBuilder builder(seed);
  const NodeId logits = builder.Floats({s.n, s.rows, 1, 1}, Logits(builder.random(), s.n, s.rows));
  const NodeId changed =
      s.changed < 0 ? kNoNode
                    : builder.Integers({s.changed, s.rows, 1, 1},
                                       Changed(builder.random(), s.n, s.first, s.changed * s.rows));
  const NodeId result = builder.builder().SampleCandidates(logits, changed, s.k, s.first);
  return std::move(builder).Finish(absl::StrCat("sample_candidates [", s.n, ", ", s.rows, "] k ",
                                                s.k, " from ", s.first, " changed ", s.changed),
                                   result, kRowSums);
}

}  // namespace

std::vector<OpCase> CandidateCases(uint64_t seed) {
  static constexpr Shape kShapes[] = {
      {1, 1, 1, 0, -1},       {1, 2, 1, 7, 3},         {5, 9, 2, 0, 0},     {5, 9, 5, 100, 4},
      {63, 8, 64 - 1, 0, 16}, {64, 9, 8, 64, 70},      {65, 9, 1, 0, 300},  {512, 9, 40, 0, -1},
      {1000, 0, 40, 0, 4},    {1500, 17, 64, 3000, 9}, {4999, 9, 64, 0, 64}};
  std::vector<OpCase> cases;
  for (const Shape& shape : kShapes) cases.push_back(CandidateCase(shape, ++seed));
  // Rows that are windows into longer ones.
  CaseBuilder builder(++seed);
  const NodeId x = builder.Normal({300, 5, 1, 1});
  const NodeId window = builder.builder().View(x, {256, 4, 1, 1}, {4, 1200, 4800, 4800}, 1232);
  const NodeId ids = builder.Integers({9, 5, 1, 1}, -1, 256);
  const NodeId some = builder.builder().View(ids, {7, 4, 1, 1}, {4, 36, 144, 144}, 40);
  const NodeId result = builder.builder().SampleCandidates(window, some, 20);
  cases.push_back(std::move(builder).Finish("sample_candidates view", result, kRowSums));
  return cases;
}

}  // namespace weft
