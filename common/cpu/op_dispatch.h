// Which function runs which op, and what it needs.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/cpu/launch.h"
#include "common/cpu/reference/host_tensor.h"
#include "common/graph/graph.h"

namespace weft::cpu {

// How the op runs on this device.
struct OpRow {
  Op op;
  // Errors: INVALID_ARGUMENT for an index out of range. Nothing outside the result is written.
  absl::Status (*run)(const reference::Operands& operands, Launch& launch);
  // Bytes of Launch::workspace() for any data; null: none. Addresses are not looked at.
  int64_t (*workspace)(const reference::Operands& operands, const KernelTable& kernels,
                       int threads);
  // Null: whatever the op table allows.
  absl::Status (*supports)(const reference::Operands& operands, const KernelTable& kernels);
};

// Null for leafs and views.
const OpRow* OpRowOf(Op op);

}  // namespace weft::cpu
