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
// Each command by itself: its nodes once, its events, what it copies or shows.
absl::Status CheckProgramCommands(const Program& program, const ProgramLimits& limits);
// Collectives: each command by itself, and those of all ranks that are here against each other.
absl::Status CheckProgramCollectives(const Program& program, const ProgramLimits& limits);
// The commands together: each node by one of them, in memories of its device, after what it reads,
// and no two streams at the same bytes at once.
absl::Status CheckProgramOrder(const Program& program);

// stream_of[device] = position of its stream, -1: none.
std::vector<int32_t> StreamOfDevice(const Program& program);

// The leaf or executed node that each node shows: itself, or what a chain of views starts from.
std::vector<NodeId> Definers(const Graph& graph);

// The stream that hands back each output: the one that computes it, for a leaf that of its slot's
// device; -1: none. Commands are checked.
std::vector<int32_t> StreamOfOutputs(const Program& program);

// The rank that a device of the program is; -1: none.
int32_t RankOfDevice(const ProgramCommunicator& communicator, int32_t device);

}  // namespace weft
