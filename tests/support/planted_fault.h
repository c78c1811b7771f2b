// The fault that --fault planted in this process, and when it strikes. For worker_faults.cc and
// fault_transport.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace weft {

enum class FaultAction { kKill, kStop, kError, kGarbage, kCorrupt, kCount };

struct PlantedFault {
  std::string verb;
  std::string action_name;
  FaultAction action = FaultAction::kCount;
  int64_t count = 1;
  bool of_data = false;  // messages of `kind` instead of the rpc `verb`
  uint32_t kind = 0;
  std::atomic<int64_t> seen = 0;

  // One more of what it counts. True if it is the one: then a line is on stderr, and unless the
  // process ended here, the caller does what the action says.
  bool Strike();
};

// Null if there is none. Set once, before threads start.
PlantedFault*& planted_fault();

}  // namespace weft
