// One small graph of the self-test, and what its leafs are filled with.
//
// The set is its own and small: it finds kernels that are wrong on this machine, not every corner
// of an op. tests/conformance does that for each kind of device.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/graph/graph_builder.h"

namespace weft::self_test {

// Limits of ErrorOf (case_run.h). Ops that only move data, or round once as IEEE 754 says.
inline constexpr double kExact = 0;
// One or two F32 roundings, and functions approximated to a few units in the last place.
inline constexpr double kFewRoundings = 2e-6;
// Sums along rows; sines and cosines of angles of some hundred.
inline constexpr double kRowSums = 1e-5;
// Pages are stored and read alike by both sides; the order of sums and the exponential differ.
inline constexpr double kAttention = 2e-5;
// Solving adds errors from row to row.
inline constexpr double kSolve = 1e-3;

// Of a product with weights of that type. Beside quantised weights the columns are rounded to 8
// bits, which is 0.004 of values that are spread evenly; sums of few such products reach 0.01.
inline double ProductLimit(DType weights) {
  return GetDTypeInfo(weights).quantized ? 0.02 : kRowSums;
}

// Values of a leaf: `integers`, or where there are none, evenly spread in [low, high) and rounded
// to its type.
struct LeafValues {
  NodeId leaf = kNoNode;
  std::vector<int32_t> integers = {};
  float low = 0;
  float high = 0;
};

struct TestCase {
  Graph graph;
  NodeId result = kNoNode;  // the one node that executes
  std::vector<LeafValues> leafs;
  double limit = 0;
};

// All bytes of a packed leaf. Blocks of quantised types are drawn from a few that are quantised
// once, because searching scales for each would take longer than the test.
std::vector<uint8_t> BytesOf(const TensorLayout& layout, const LeafValues& values, Random& random);

class CaseBuilder {
 public:
  // Evenly spread with mean 0 and deviation 1.
  NodeId Values(const Extents& ne) { return Between(ne, -kSpread, kSpread); }
  NodeId Between(const Extents& ne, float low, float high) {
    return Leaf(LeafKind::kInput, DType::kF32, ne, {.low = low, .high = high});
  }
  NodeId Weights(const Extents& ne, DType dtype = DType::kF32) {
    return Leaf(LeafKind::kWeight, dtype, ne, {.low = -kSpread, .high = kSpread});
  }
  NodeId Pages(const Extents& ne, DType dtype) {
    return Leaf(LeafKind::kCache, dtype, ne, {.low = -kSpread, .high = kSpread});
  }
  NodeId Integers(const Extents& ne, std::vector<int32_t> values) {
    return Leaf(LeafKind::kInput, DType::kI32, ne, {.integers = std::move(values)});
  }
  NodeId Table(const Extents& ne, std::vector<int32_t> values) {
    return Leaf(LeafKind::kPageTable, DType::kI32, ne, {.integers = std::move(values)});
  }

  GraphBuilder& graph() { return builder_; }

  // Ends the case; an illegal graph is a broken invariant.
  TestCase Finish(NodeId result, double limit) &&;

 private:
  static constexpr float kSpread = 1.7320508f;

  NodeId Leaf(LeafKind kind, DType dtype, const Extents& ne, LeafValues values);

  GraphBuilder builder_;
  std::vector<LeafValues> leafs_;
};

// Appends the case whose result `make` builds.
template <typename Make>
void AddCase(std::vector<TestCase>& cases, double limit, Make make) {
  CaseBuilder builder;
  const NodeId result = make(builder);
  cases.push_back(std::move(builder).Finish(result, limit));
}

}  // namespace weft::self_test
