// What each process did for a run, and what that is per step: for `--stats`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "coordinator/cluster/fleet.h"
#include "coordinator/engine/process_group.h"
#include "coordinator/engine/token_times.h"

namespace weft {

// Since the session was opened.
struct ProcessCounters {
  std::string name;
  int64_t steps = 0;
  int64_t hand_offs = 0;  // messages to other processes of the plan
  int64_t hand_off_bytes = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
  double wire_seconds = 0;      // messages of collectives
  double hand_off_seconds = 0;  // tensors to and from other processes
  // Of workers: what passed between them and the coordinator.
  int64_t program_sends = 0;
  int64_t requests = 0;
  int64_t request_bytes = 0;
  int64_t replies = 0;
  int64_t reply_bytes = 0;
  double round_trip_seconds = 0;
};

// By process. `fleet` is null where all runs here.
std::vector<ProcessCounters> ReadProcessCounters(const ProcessGroup& group, Fleet* fleet);

// Per step between two readings of the same processes, an entry per process that took part.
nlohmann::ordered_json ProcessCountersJson(const std::vector<ProcessCounters>& before,
                                           const std::vector<ProcessCounters>& after);
// The same as lines of text.
std::string ProcessCountersText(const std::vector<ProcessCounters>& before,
                                const std::vector<ProcessCounters>& after);

// What the time of a usual token went to, and of all of them, in microseconds.
nlohmann::ordered_json TokenTimesJson(const std::vector<TokenTimes>& tokens);
// As a line.
std::string TokenTimesText(const std::vector<TokenTimes>& tokens);

}  // namespace weft
