// What the passes read and write: a device for each node with the cause, the cut into splits, and
// the tensors copied between devices. A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "coordinator/scheduler/plan_input.h"

namespace weft {

// Why a node is where it is (spec B.4).
enum class Cause : uint8_t {
  kNone,
  kPin,          // usr     the user said so
  kDestination,  // 1.dst   its own memory is there
  kViewSource,   // 1.vsrc  it shows or writes memory that is there
  kInput,        // 1.inp   filled by the host
  kWeight,       // 1.wgtK  its source K is a weight there
  kOffload,      // 1.off   the device wants it although its weight lies in host memory
  kBatch,        // 1.bat   the device prefers this batch
  kHostBound,    // 1.host  a weight that no listed device reads, bound through host memory
  kSpread,       // 2.sup   a neighbour is there
  kBest,         // 3.best  most of its sources can be read there
  kUpgrade,      // 3.upg   the same memory as a lower device's
  kInheritView,  // 4.vsrc  its root is there
  kInheritUser,  // 4.cur   its reader is there
  kFirst,        // 4.any   the first that can run it
};

struct Assignment {
  int32_t device = kNoDevice;
  Cause cause = Cause::kNone;
  int32_t source = -1;  // of kWeight, kOffload and kBatch: which source is the weight
  friend bool operator==(const Assignment&, const Assignment&) = default;
};

enum class ReplicaKind : uint8_t {
  kInput,    // an input or page table: the host fills it there too
  kTensor,   // a result or a cache
  kWeight,   // staged from another memory
  kExperts,  // of an expert weight only what the step uses
};

// A tensor as another device sees it, and all that compute in the same memory. Identity is the
// source's id.
struct Replica {
  NodeId source = kNoNode;
  int32_t device = kNoDevice;
  ReplicaKind kind = ReplicaKind::kTensor;
  int32_t split = 0;     // the first that reads it
  NodeId ids = kNoNode;  // of kExperts
  int64_t bytes = 0;
  friend bool operator==(const Replica&, const Replica&) = default;
};

// Consecutive nodes on one device, [begin, end) in graph order.
struct Split {
  int32_t device = kNoDevice;
  int32_t begin = 0;
  int32_t end = 0;
  std::vector<int32_t> inputs;  // replicas made at its start, positions in Plan::replicas
  friend bool operator==(const Split&, const Split&) = default;
};

struct Plan {
  std::vector<Assignment> assignments;  // per node
  std::vector<Split> splits;
  std::vector<Replica> replicas;
  std::vector<std::string> remarks;  // for people, in the order found

  friend bool operator==(const Plan&, const Plan&) = default;
};

// "1.wgt0", "2.sup", ...; "-" for none.
std::string CauseCode(const Assignment& assignment);
// The same in words, with names: "its weight 'blk.0.attn_q.weight' lies there".
std::string CauseText(const Graph& graph, NodeId id, const Assignment& assignment);

std::string_view ReplicaKindName(ReplicaKind kind);

}  // namespace weft
