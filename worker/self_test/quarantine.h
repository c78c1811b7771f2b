// What a device computed wrong when it was tested: the worker says no for it in the device's name,
// so that plans use the plain form of the op or another device (decision 11).
#pragma once

#include <bitset>
#include <string>
#include <vector>

#include "common/device/device.h"
#include "common/graph/graph.h"

namespace weft {

// What one test case stands for. `types` are those of the node's sources and result, F32 and I32
// only where there is nothing else: the type of the weight of a product, those of the pages of
// attention, both of a conversion. `fused` tells a node with a plain form from one of the same op
// without (rms_norm with and without weight).
struct OpKind {
  Op op = Op::kLeaf;
  std::bitset<kDTypeCount> types;
  bool fused = false;
  friend bool operator==(const OpKind&, const OpKind&) = default;
};
OpKind OpKindOf(const Graph& graph, NodeId id);

// "mul_mat Q4_0", "fused rms_norm F32", "paged_attention F16 Q8_0".
std::string OpKindText(const OpKind& kind);

// A value. Holds for the memory that the device was tested in, its own buffer type with its packing
// of weights.
class Quarantine {
 public:
  // `device`: how error texts call it.
  explicit Quarantine(std::string device = "") : device_(std::move(device)) {}

  // Notes that `kind` is wrong, and why: "error 0.31, limit 1e-06". The first reason of a kind
  // stays.
  void Add(const OpKind& kind, std::string why);

  // UNIMPLEMENTED "gpu0 computed rope F32 wrong in its self-test (error 0.31, limit 1e-06)" if a
  // kind that was wrong covers the node: of the same op, with no other types than the node's, and
  // fused only if the node is. What is wrong without being fused is not trusted fused either.
  Support Check(const Graph& graph, NodeId id) const;

  bool empty() const { return entries_.empty(); }
  // One line for each kind: "rope F32: error 0.31, limit 1e-06".
  std::vector<std::string> Texts() const;

 private:
  struct Entry {
    OpKind kind;
    std::string why;
  };

  std::string device_;
  std::vector<Entry> entries_;
};

}  // namespace weft
