// What a program and a session may take at most. Everything is checked before it is allocated.
#pragma once

#include <cstdint>

namespace weft {

struct ProgramLimits {
  // --- One program ---
  int64_t nodes = int64_t{1} << 17;
  int64_t slots = int64_t{1} << 17;
  int64_t devices = 64;
  int64_t commands = int64_t{1} << 17;  // of all streams together
  int64_t events = int64_t{1} << 14;
  int64_t outputs = 1024;
  int64_t edges = int64_t{1} << 14;  // ids lie below it, in each direction
  int64_t peers = 4096;              // likewise
  int64_t communicators = 64;
  int64_t name_bytes = 256;                      // of one node or device
  int64_t slot_bytes = int64_t{1} << 42;         // of one slot
  int64_t step_input_bytes = int64_t{1} << 30;   // all inputs of a step
  int64_t step_output_bytes = int64_t{1} << 32;  // all outputs of a step
  int64_t step_edge_bytes = int64_t{1} << 30;    // all that a step sends, and all that it receives
  int64_t table_bytes = int64_t{1} << 28;        // page tables, of a slot and of a session
  // --- One session ---
  int64_t programs = 256;
  int64_t instances = 256;
  int64_t table_updates = int64_t{1} << 20;  // of one step
  int64_t page_copies = int64_t{1} << 16;    // of one step
};

// Steps launched and not yet awaited (decision 7).
inline constexpr int kMaxStepsInFlight = 4;

// Tensors that own memory start at multiples of this in their slots.
inline constexpr int64_t kTensorAlignment = 64;

}  // namespace weft
