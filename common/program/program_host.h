// A place that runs programs: this process (LocalProgramHost) or a worker (rpc_backend/client). One
// host object is one session: it owns the page tables and everything instantiated through it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/device/device.h"
#include "common/program/program.h"

namespace weft {

enum class ProgramId : int64_t {};
enum class InstanceId : int64_t {};

// Memory for one slot of kind kWeight or kCache, by id.
struct SlotBinding {
  SlotKind kind = SlotKind::kWeight;
  int32_t id = 0;
  Buffer* buffer = nullptr;
  int64_t offset = 0;
};

// One entry of a page table: table[entry] = page. `entry` counts I32 values from the table's start.
struct TableUpdate {
  int32_t table = 0;
  int32_t entry = 0;
  int32_t page = 0;
};

// Copies page `from` over page `to` in every bound cache of table `table`'s group before the step
// computes (a shared prefix that is about to be written).
struct PageCopy {
  int32_t cache = 0;  // cache id
  int32_t from = 0;
  int32_t to = 0;
  int64_t page_bytes = 0;
};

struct StepInput {
  int64_t step =
      0;  // counts up by one per launch of this session, from 1; a gap is an error (decision 13)
  // inputs[i] fills every input slot of id i; exactly their size. Copied before Launch returns.
  std::vector<absl::Span<const uint8_t>> inputs;
  std::vector<TableUpdate> table_updates;  // applied in stream order, also if the step is cancelled
  std::vector<PageCopy> page_copies;
  // Names the step in messages between processes, each of which counts its own steps; grows from
  // launch to launch. 0: as `step`.
  int64_t edge_step = 0;
  // The step ends with DEADLINE_EXCEEDED if a message has not come by then.
  Clock::TimePoint deadline = Clock::TimePoint::max();
};

struct StepOutput {
  std::vector<std::vector<uint8_t>> outputs;  // one per ProgramOutput, packed
  // Of the stream that was longest at it: what it spent computing, waiting for other streams and
  // processes, on the messages of collectives, and on hand-offs between processes.
  double compute_seconds = 0;
  double wait_seconds = 0;
  double wire_seconds = 0;
  double hand_off_seconds = 0;

  double busy_seconds() const {
    return compute_seconds + wait_seconds + wire_seconds + hand_off_seconds;
  }
};

// What happened since the host was made.
struct HostCounters {
  // Instantiates that replaced memory which instances knew, and instances that were prepared once
  // more because of it: growth that was not planned for.
  int64_t memory_replaced = 0;
  int64_t prepared_again = 0;
  std::string
      last_reason;         // "arena 1 of w0.gpu0 grew from 4096 to 8192 bytes", of the last of them
  int64_t launched = 0;    // steps
  int64_t overlapped = 0;  // steps that started while an earlier one still ran
};

class ProgramHost {
 public:
  virtual ~ProgramHost() = default;

  // Verifies and stores; equal programs share an id. Errors: INVALID_ARGUMENT, RESOURCE_EXHAUSTED
  // (too many programs).
  virtual absl::StatusOr<ProgramId> Install(Program program) = 0;
  // Binds weights and caches, allocates inputs, arenas and crossing slots (shared between instances
  // of this session where sizes allow: on each device its steps run one after another), prepares
  // every compute command. Errors: INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNIMPLEMENTED.
  virtual absl::StatusOr<InstanceId> Instantiate(ProgramId program,
                                                 absl::Span<const SlotBinding> bindings) = 0;
  virtual absl::Status Release(InstanceId instance) = 0;

  // Queues one step and returns once its inputs are copied. Steps of one session run in launch
  // order, on each device; those of programs with Program::copies > 1 may overlap on several.
  virtual absl::Status Launch(InstanceId instance, const StepInput& input) = 0;
  // Waits for that step. Errors: DEADLINE_EXCEEDED; CANCELLED; ABORTED by the observer; the first
  // error of its commands, those of messages included.
  // DEADLINE_EXCEEDED has two meanings that only the caller can tell apart, by the clock: before
  // `deadline` it is the step's own end, because a message to it did not come by its
  // StepInput::deadline, and the step is over; else this wait's, and the step is still in flight.
  // Who wants no doubt gives the wait a later deadline than the step. Another Await of a step that
  // is over says NOT_FOUND.
  virtual absl::StatusOr<StepOutput> Await(int64_t step, Clock::TimePoint deadline) = 0;
  // The step ends as soon as its streams notice; its table updates still happen.
  virtual absl::Status Cancel(int64_t step) = 0;
  virtual HostCounters counters() = 0;
};

}  // namespace weft
