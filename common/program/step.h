// One step in flight, as the executor and the devices' threads share it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/program/program_host.h"
#include "common/program/program_instance.h"

namespace weft {

// Consecutive entries of one page table: `count` values of Step::pages from `first_page`.
struct TableRun {
  int32_t table = 0;
  int32_t first_entry = 0;
  int32_t count = 0;
  size_t first_page = 0;
};

// Its memory is kept and reused, so that a steady state allocates only outputs. The launching
// thread fills it before Submit; device threads only read the first part.
struct Step {
  int64_t number = 0;
  const ProgramInstance* instance = nullptr;
  int64_t edge_step = 0;                                // its name in messages
  Clock::TimePoint deadline = Clock::TimePoint::max();  // of its receives
  int32_t copy = 0;             // which copy of crossing slots, events and executables it uses
  std::vector<uint8_t> upload;  // inputs, at the host offsets of the instance
  std::vector<TableRun> table_runs;
  std::vector<int32_t> pages;
  std::vector<PageCopy> page_copies;
  StepOutput output;  // output.outputs[i] is written by the device that hands it back

  // Guarded by the executor's mutex.
  enum class Phase { kFree, kLaunched, kFinished };
  Phase phase = Phase::kFree;
  absl::Status status;
  std::vector<bool> recorded;    // per event
  std::vector<bool> pending_on;  // per device: has not finished its part
  int32_t pending_count = 0;
  bool overlapped = false;  // started while an earlier step still ran somewhere
  // Set when the step was cancelled or a command failed: streams end at their next command.
  std::atomic<bool> stop = false;
};

}  // namespace weft
