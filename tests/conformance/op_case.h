// One graph with data and the tolerance of its results: what every device is tested with.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/graph/graph_builder.h"
#include "tests/support/tensor_matchers.h"

namespace weft {

struct OpCase {
  std::string name;
  Op op = Op::kLeaf;  // what it is about
  Graph graph;
  NodeId result = kNoNode;
  std::vector<std::pair<NodeId, std::vector<uint8_t>>> leafs;  // each leaf's bytes
  Tolerance tolerance;
};

// Builds a case: leafs come with random data.
class CaseBuilder {
 public:
  explicit CaseBuilder(uint64_t seed) : random_(seed) {}

  // Normally distributed values, rounded to the type.
  NodeId Normal(const Extents& ne, DType dtype = DType::kF32) {
    return Values(ne, dtype, [&] { return static_cast<float>(random_.Normal()); });
  }
  NodeId Uniform(const Extents& ne, float low, float high) {
    return Values(ne, DType::kF32,
                  [&] { return static_cast<float>(low + (high - low) * random_.Uniform()); });
  }
  NodeId Floats(const Extents& ne, const std::vector<float>& values) {
    return Leaf(ne, DType::kF32, values);
  }
  // Uniform in [low, high].
  NodeId Integers(const Extents& ne, int64_t low, int64_t high);
  NodeId Integers(const Extents& ne, const std::vector<int32_t>& values);

  Random& random() { return random_; }
  GraphBuilder& builder() { return builder_; }

  // Ends the case. Aborts the test program if the graph is illegal.
  OpCase Finish(std::string name, NodeId result, Tolerance tolerance) &&;

 private:
  template <typename Next>
  NodeId Values(const Extents& ne, DType dtype, Next next) {
    std::vector<float> values(static_cast<size_t>(ElementCount(ne)));
    for (float& value : values) value = next();
    return Leaf(ne, dtype, values);
  }
  NodeId Leaf(const Extents& ne, DType dtype, const std::vector<float>& values);

  Random random_;
  GraphBuilder builder_;
  int32_t next_leaf_ = 0;
  std::vector<std::pair<NodeId, std::vector<uint8_t>>> leafs_;
};

}  // namespace weft
