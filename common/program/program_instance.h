// A program bound to memory and prepared on this process's devices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "common/program/program.h"
#include "common/program/program_host.h"
#include "common/program/session_memory.h"

namespace weft {

// One command, ready to queue.
struct PreparedCommand {
  std::unique_ptr<Executable> executable;  // of a compute command
  SlotMemory source, destination;          // of a copy
  int64_t bytes = 0;
  int32_t event = -1;  // of a record or wait
};

// What one device does in a step.
struct PreparedStream {
  std::vector<PreparedCommand> commands;  // parallel to the program's
  std::vector<int32_t> inputs;            // ids of the inputs on this device
  std::vector<int32_t> outputs;           // indices of the outputs on this device
};

// An input or output: where it lies, and where in the step's host memory (inputs only).
struct Transfer {
  SlotMemory memory;
  int64_t bytes = 0;
  int64_t host_offset = 0;
};

// Made and changed while all devices are idle; read by their threads in between.
class ProgramInstance {
 public:
  // Resolves the slots and prepares every compute command. `program`, `memory` and `backends` (one
  // per device) outlive it. Errors: INVALID_ARGUMENT for a missing, doubled or too small binding;
  // UNIMPLEMENTED and others of Prepare, naming device, command and node.
  static absl::StatusOr<std::unique_ptr<ProgramInstance>> Create(
      ProgramId id, const Program& program, absl::Span<const SlotBinding> bindings,
      const SessionMemory& memory, absl::Span<Backend* const> backends);

  // Once more, after the session's memory moved. On failure the instance stays unusable.
  absl::Status PrepareAgain(const SessionMemory& memory, absl::Span<Backend* const> backends);

  ProgramId program_id() const { return program_id_; }
  const Program& program() const { return program_; }
  bool usable() const { return usable_; }
  bool BindsBuffer(const Buffer* buffer) const;

  // The stream of a device, or null.
  const Stream* StreamOf(int32_t device) const;
  const PreparedStream* PreparedOf(int32_t device) const;
  absl::Span<const Transfer> inputs() const { return inputs_; }
  absl::Span<const Transfer> outputs() const { return outputs_; }
  int64_t input_bytes() const { return input_bytes_; }  // of the host memory of a step
  Event& event(int32_t index) const { return *events_[index]; }

  // The slot of a bound cache, and its size. Errors: INVALID_ARGUMENT.
  absl::Status CheckPageCopy(const PageCopy& copy) const;
  // The cache of a checked copy if it lies on `device`, else a null buffer.
  SlotMemory CacheOn(int32_t device, int32_t cache) const;

 private:
  ProgramInstance(ProgramId id, const Program& program) : program_id_(id), program_(program) {}
  absl::Status Bind(absl::Span<const SlotBinding> bindings, absl::Span<Backend* const> backends);
  absl::Status PrepareStream(int32_t stream, absl::Span<Backend* const> backends);
  absl::Status PrepareCommand(const Command& command, Backend& backend, PreparedCommand& prepared);
  void ResolveTransfers();
  SlotMemory MemoryOf(const SlotPlace& place) const;
  int32_t CacheSlot(int32_t cache) const;

  const ProgramId program_id_;
  const Program& program_;
  bool usable_ = false;
  std::vector<SlotMemory> bound_;  // weights and caches, by slot
  std::vector<SlotMemory> slots_;  // all
  std::vector<TensorPlace> places_;
  std::vector<int32_t> cache_slots_;
  std::vector<int32_t> stream_of_;  // by device
  std::vector<PreparedStream> streams_;
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<Transfer> inputs_;
  std::vector<Transfer> outputs_;
  int64_t input_bytes_ = 0;
};

// "command 3 (node 5 (mul_mat 'q') and 2 more)", for error texts.
std::string CommandText(const Program& program, const Stream& stream, size_t command);

}  // namespace weft
