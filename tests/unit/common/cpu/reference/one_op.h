// One op on literal data, for the oracle's tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/graph/graph_builder.h"
#include "tests/support/host_graph.h"
#include "tests/support/status_matchers.h"

namespace weft {

// Extents of which trailing ones are left out.
struct Dims {
  Dims(std::initializer_list<int64_t> extents) {
    std::copy(extents.begin(), extents.end(), ne.begin());
  }
  Dims(const Extents& extents) : ne(extents) {}
  Extents ne = {1, 1, 1, 1};
};

// A graph under construction with the data of its leafs.
class OneOp {
 public:
  NodeId F32(const Dims& ne, std::vector<float> values) {
    return Typed(DType::kF32, ne, std::move(values));
  }
  NodeId Typed(DType dtype, const Dims& ne, std::vector<float> values) {
    const NodeId id = builder.Leaf(LeafKind::kInput, next_++, dtype, ne.ne, "x");
    floats_.emplace_back(id, std::move(values));
    return id;
  }
  NodeId I32(const Dims& ne, std::vector<int32_t> values) {
    const NodeId id = builder.Leaf(LeafKind::kInput, next_++, DType::kI32, ne.ne, "ids");
    integers_.emplace_back(id, std::move(values));
    return id;
  }

  // The values of `result` after evaluating everything.
  absl::StatusOr<std::vector<float>> Run(NodeId result) {
    const absl::Status status = Evaluate();
    if (!status.ok()) return status;
    return host_->F32(result);
  }
  absl::StatusOr<std::vector<int32_t>> RunI32(NodeId result) {
    const absl::Status status = Evaluate();
    if (!status.ok()) return status;
    return host_->I32(result);
  }
  // After Run.
  HostGraph& host() { return *host_; }

  GraphBuilder builder;

 private:
  absl::Status Evaluate() {
    absl::StatusOr<Graph> graph = std::move(builder).Finish();
    if (!graph.ok()) return graph.status();
    graph_ = *std::move(graph);
    RETURN_IF_ERROR(VerifyGraph(graph_));
    host_ = std::make_unique<HostGraph>(graph_);
    for (const auto& [id, values] : floats_) host_->SetF32(id, values);
    for (const auto& [id, values] : integers_) host_->SetI32(id, values);
    return host_->Run();
  }

  int32_t next_ = 0;
  std::vector<std::pair<NodeId, std::vector<float>>> floats_;
  std::vector<std::pair<NodeId, std::vector<int32_t>>> integers_;
  Graph graph_;
  std::unique_ptr<HostGraph> host_;
};

// Near within `tolerance`, element by element.
inline void ExpectNear(const std::vector<float>& got, const std::vector<double>& want,
                       double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], tolerance) << "element " << i;
}

}  // namespace weft
