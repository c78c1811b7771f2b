// Turns a graph that runs on one device into a program: slots for what is bound, an arena for what
// is computed.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "common/graph/graph.h"
#include "common/program/program.h"

namespace weft {

struct CompiledProgram {
  Program program;
  int64_t arena_bytes = 0;
  int64_t arena_lower_bound = 0;
  int64_t workspace_bytes = 0;  // largest of any node
};

// Errors: UNIMPLEMENTED naming the first node that `device` cannot run and why.
absl::StatusOr<CompiledProgram> CompileForDevice(const Graph& graph, const Device& device);

}  // namespace weft
