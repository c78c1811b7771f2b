// A graph with all its tensors in host memory, evaluated by the oracle. Every tensor that owns
// memory has an allocation of its own, so the address sanitizer sees a step outside it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/graph/graph.h"

namespace weft {

class HostGraph {
 public:
  // `graph` is borrowed. All memory is zero.
  explicit HostGraph(const Graph& graph);

  // Stores the elements of leaf `id`, in order, rounded to its type. Aborts the test program if
  // their number is wrong.
  void SetF32(NodeId id, absl::Span<const float> values);
  void SetI32(NodeId id, absl::Span<const int32_t> values);

  // Evaluates every node in order; stops at the first error.
  absl::Status Run();

  // The elements of `id` in the order of its layout.
  std::vector<float> F32(NodeId id) const;
  std::vector<int32_t> I32(NodeId id) const;

  // First byte of each node's tensor.
  absl::Span<uint8_t* const> data() const { return data_; }
  // All bytes of a tensor that owns its memory.
  absl::Span<uint8_t> bytes(NodeId id);

 private:
  const Graph& graph_;
  std::vector<std::unique_ptr<uint8_t[]>> memory_;
  std::vector<uint8_t*> data_;
};

}  // namespace weft
