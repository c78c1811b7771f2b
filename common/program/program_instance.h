// A program bound to memory and prepared on this process's devices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/device.h"
#include "common/program/collective_runner.h"
#include "common/program/program.h"
#include "common/program/program_host.h"
#include "common/program/session_memory.h"

namespace weft {

// A value for each copy of the crossing slots (Program::copies), or one for all of them.
template <typename T>
class PerCopy {
 public:
  const T& operator[](int32_t copy) const { return values_[values_.size() == 1 ? 0 : copy]; }
  // The values are added in the order of the copies.
  void Add(T value) { values_.push_back(std::move(value)); }

 private:
  std::vector<T> values_;
};

// What a command that moves or shows bytes works on.
struct CommandMemory {
  SlotMemory source;
  SlotMemory destination;
  SlotMemory ids;
};

// One command, ready to queue.
struct PreparedCommand {
  PerCopy<std::unique_ptr<Executable>> executable;  // of a compute command
  PerCopy<CommandMemory> memory;                    // of copies, edges, collectives and observation
  std::unique_ptr<const PreparedCollective> collective;
  int64_t bytes = 0;
  int32_t event = -1;  // of a record or wait
};

// An input or output on one device.
struct Transfer {
  int32_t id = 0;  // of the input, or index of the output
  int64_t bytes = 0;
  int64_t host_offset = 0;  // of an input, in the host memory of a step
  PerCopy<SlotMemory> memory;
};

// What one device does in a step.
struct PreparedStream {
  std::vector<PreparedCommand> commands;  // parallel to the program's
  std::vector<Transfer> inputs;
  std::vector<Transfer> outputs;
};

// An input as the host holds it.
struct HostInput {
  int64_t bytes = 0;
  int64_t offset = 0;
};

// Made and changed while all devices are idle; read by their threads in between.
class ProgramInstance {
 public:
  // Resolves the slots and prepares every compute command. `program`, `memory` and `backends` (one
  // per device) outlive it. Errors: INVALID_ARGUMENT for a missing, doubled or too small binding;
  // UNIMPLEMENTED for a memory that a device cannot use, and others of Prepare, naming device,
  // command and node.
  static absl::StatusOr<std::unique_ptr<ProgramInstance>> Create(
      ProgramId id, const Program& program, absl::Span<const SlotBinding> bindings,
      const SessionMemory& memory, absl::Span<Backend* const> backends);

  // False once the session's memory moved from under it.
  bool IsCurrent(const SessionMemory& memory) const;
  // Once more, for that. On failure the instance stays unusable.
  absl::Status PrepareAgain(const SessionMemory& memory, absl::Span<Backend* const> backends);

  ProgramId program_id() const { return program_id_; }
  const Program& program() const { return program_; }
  bool usable() const { return usable_; }
  bool BindsBuffer(const Buffer* buffer) const;

  // The stream of a device, or null.
  const Stream* StreamOf(int32_t device) const;
  const PreparedStream* PreparedOf(int32_t device) const;
  absl::Span<const HostInput> inputs() const { return inputs_; }  // by id
  int64_t input_bytes() const { return input_bytes_; }            // of the host memory of a step
  absl::Span<const int64_t> output_bytes() const { return output_bytes_; }
  // The event of a copy of the program.
  Event& event(int32_t index, int32_t copy) const {
    return *events_[static_cast<size_t>(index) * program_.copies + copy];
  }
  // Which copy the step of that rotation uses.
  int32_t CopyOf(int32_t rotation) const { return program_.copies == 1 ? 0 : rotation; }

  // The slot of a bound cache, and its size. Errors: INVALID_ARGUMENT.
  absl::Status CheckPageCopy(const PageCopy& copy) const;
  // The cache of a checked copy if it lies on `device`, else a null buffer.
  SlotMemory CacheOn(int32_t device, int32_t cache) const;

 private:
  ProgramInstance(ProgramId id, const Program& program) : program_id_(id), program_(program) {}
  absl::Status CheckMemories(absl::Span<Backend* const> backends) const;
  absl::Status Bind(absl::Span<const SlotBinding> bindings, absl::Span<Backend* const> backends);
  absl::Status MakeEvents(absl::Span<Backend* const> backends);
  void ResolveInputs();
  // Of one copy; in their order.
  void ResolvePlaces(int32_t copy);
  void ResolveTransfers(int32_t copy);
  absl::Status PrepareStream(int32_t stream, int32_t copy, absl::Span<Backend* const> backends);
  absl::Status PrepareCommand(const Command& command, int32_t copy, Backend& backend,
                              PreparedCommand& prepared);
  // True if a tensor that the command touches lies elsewhere in each copy.
  bool DiffersByCopy(const Command& command) const;
  bool IsCrossing(NodeId id) const;
  SlotMemory MemoryOf(const SlotPlace& place, int32_t copy) const;
  int32_t CacheSlot(int32_t cache) const;

  const ProgramId program_id_;
  const Program& program_;
  bool usable_ = false;
  std::vector<SlotMemory> bound_;                // weights and caches, by slot
  std::vector<std::vector<SlotMemory>> shared_;  // the session's, by copy and slot
  std::vector<TensorPlace> places_;              // of the copy that is being prepared
  std::vector<int32_t> cache_slots_;
  std::vector<int32_t> stream_of_;  // by device
  std::vector<PreparedStream> streams_;
  std::vector<std::unique_ptr<Event>> events_;  // by index and copy
  std::vector<HostInput> inputs_;
  std::vector<int64_t> output_bytes_;
  int64_t input_bytes_ = 0;
};

// "command 3 (node 5 (mul_mat 'q') and 2 more)", for error texts.
std::string CommandText(const Program& program, const Stream& stream, size_t command);

}  // namespace weft
