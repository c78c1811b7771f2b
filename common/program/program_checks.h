// The parts of VerifyProgram. Each assumes that those above it passed.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/program/program.h"

namespace weft {

// Counts, names, devices of streams, slots and their sizes.
absl::Status CheckProgramSizes(const Program& program, const ProgramLimits& limits);
// The place of every node, and the outputs.
absl::Status CheckProgramPlaces(const Program& program, const ProgramLimits& limits);
// The commands: each node once, on the device that owns what it writes, after what it reads.
absl::Status CheckProgramOrder(const Program& program);

// stream_of[device] = position of its stream, -1: none.
std::vector<int32_t> StreamOfDevice(const Program& program);

}  // namespace weft
