// Tables of changes that make a good program hostile.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/program/program.h"

namespace weft {

struct HostileCase {
  const char* what;
  void (*change)(Program&);
  const char* error;  // null: it is sound
};

// `make` gives a program that verifies; each change of it is refused with INVALID_ARGUMENT and that
// text.
void CheckHostile(Program (*make)(), absl::Span<const HostileCase> cases);

inline std::vector<Command>& Commands(Program& program, int stream) {
  return program.streams[static_cast<size_t>(stream)].commands;
}

// The first command of that type in a stream; aborts the test program if there is none.
template <typename T>
T& First(Program& program, int stream) {
  for (Command& command : Commands(program, stream)) {
    if (auto* found = std::get_if<T>(&command)) return *found;
  }
  CheckFailed(__FILE__, __LINE__, "a command of that type");
}

template <typename T>
void Drop(Program& program, int stream) {
  std::erase_if(Commands(program, stream),
                [](const Command& command) { return std::holds_alternative<T>(command); });
}

// The node of that name, or kNoNode, and where it lies.
NodeId Named(const Program& program, std::string_view name);
SlotPlace& PlaceOf(Program& program, std::string_view name);

// On the devices of SharingMachine. host: x doubled. accel, in its memory: rows of the double
// stored into a cache, and the sum of the cache's rows. gpu, which reaches it: the double plus 1,
// and a half of x. Its streams: host [compute doubled, records], accel [waits, compute store and
// sum], gpu [waits, compute plus and half].
Program SharingProgram();

}  // namespace weft
