// What computes: devices answer static questions, backends are command streams on them.
//
//   Device -> Backend            who computes
//   Device -> BufferType -> Buffer   where the data is
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/device/buffer.h"
#include "common/graph/graph.h"

namespace weft {

enum class DeviceKind : uint8_t { kCpu, kGpu, kAccelerator, kMeta };

// "cpu", "gpu", "accel", "meta".
std::string_view DeviceKindName(DeviceKind kind);

// What is optional, as plain data.
struct DeviceCapabilities {
  bool async = false;              // launches return before the work is done
  bool events = false;             // streams of other devices can wait for its events
  bool host_memory = false;        // its default buffer type is host memory
  bool wraps_host_memory = false;  // WrapHostMemory works
};

struct DeviceMemory {
  int64_t free_bytes = 0;  // both 0: unknown
  int64_t total_bytes = 0;
};

// Batches that a device is good at, in tokens of a step; both ends included.
struct BatchRange {
  int64_t min = 1;
  int64_t max = std::numeric_limits<int64_t>::max();
  bool Contains(int64_t tokens) const { return min <= tokens && tokens <= max; }
  friend bool operator==(const BatchRange&, const BatchRange&) = default;
};

// The answer of Supports: yes, or no with the reason.
using Support = absl::Status;

// Where one tensor of a graph lies. `buffer` is null for tensors that the slice does not touch.
struct TensorPlace {
  Buffer* buffer = nullptr;
  int64_t offset = 0;  // of the tensor's first byte
};

// The part of a graph that one backend runs: these nodes in this order (leafs and views may be
// listed and are skipped). `places` has an entry per node of the graph, views included.
struct GraphSlice {
  const Graph* graph = nullptr;
  absl::Span<const NodeId> nodes;
  absl::Span<const TensorPlace> places;
};

// A slice prepared for launching any number of times: kernels chosen, addresses resolved, workspace
// reserved.
class Executable {
 public:
  virtual ~Executable() = default;
};

// Marks a point in a stream.
class Event {
 public:
  virtual ~Event() = default;
  // Blocks the host until the point is reached; at once if never recorded. Returns the sticky
  // status of the work before it.
  virtual absl::Status Synchronize() = 0;
};

struct BackendOptions {
  // Called between chunks of work, at most 1 ms apart, from the thread that launches (decision 5).
  // May be empty.
  std::function<void()> progress;
};

// One in-order command stream on one device. One thread at a time calls it. Where the device is not
// async every call is complete when it returns.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Device& device() = 0;

  // Errors: UNIMPLEMENTED naming the first node that the device cannot run; INVALID_ARGUMENT for a
  // place that is missing, misaligned or outside its buffer; RESOURCE_EXHAUSTED for the workspace.
  virtual absl::StatusOr<std::unique_ptr<Executable>> Prepare(const GraphSlice& slice) = 0;
  // Queues one run. `executable` came from this backend's Prepare and outlives the run.
  virtual absl::Status Launch(Executable& executable) = 0;

  // Queues a copy between a buffer of this device and host memory, which must stay valid until
  // Synchronize or an event recorded after it.
  virtual absl::Status Upload(const void* data, Buffer& destination, int64_t offset,
                              int64_t bytes) = 0;
  virtual absl::Status Download(Buffer& source, int64_t offset, void* data, int64_t bytes) = 0;
  // Queues a copy into a buffer of this device, ordered after everything queued here. The source's
  // stream is the caller's to order, by an event.
  virtual absl::Status Copy(Buffer& source, int64_t source_offset, Buffer& destination,
                            int64_t destination_offset, int64_t bytes) = 0;

  virtual absl::StatusOr<std::unique_ptr<Event>> NewEvent() = 0;
  virtual absl::Status Record(Event& event) = 0;
  // Later work of this stream waits for the point; the host does not. `event` may belong to another
  // device.
  virtual absl::Status Wait(Event& event) = 0;

  // Waits for everything queued; returns and clears the sticky status of asynchronous work.
  virtual absl::Status Synchronize() = 0;
};

// From how many tokens on a device asks for a node whose weight lies in host memory, if it does not
// say otherwise.
inline constexpr int64_t kDefaultOffloadBatch = 32;

// The answer of a device that cannot use that memory, naming both, the packing and who reads it.
Support CannotRead(const Device& device, const BufferType& type);

// UNIMPLEMENTED for nodes that execute, but on no device (RunsOnDevice).
Support CheckRunsOnDevice(const Graph& graph, NodeId id);

// The batch of a node for that question: the columns of a product, tokens of a product by expert
// and of rope, 0 for get_rows (never), else rows of the result (spec A.3).
int64_t OffloadBatch(const Graph& graph, NodeId id);

class Device {
 public:
  virtual ~Device() = default;
  virtual const std::string& name() const = 0;         // unique in the process
  virtual const std::string& description() const = 0;  // for people
  virtual DeviceKind kind() const = 0;
  // The process it is part of: "local", or the worker's name. Devices of one host share its memory.
  virtual const std::string& host() const = 0;
  // The machine that process runs on, as far as is known: hosts with equal words reach each other
  // through its memory. It says nothing about where programs run.
  virtual const std::string& machine() const { return host(); }
  // What decides how it rounds: devices of one kind with equal words compute the same bits from the
  // same values.
  virtual const std::string& arithmetic() const { return description(); }
  virtual DeviceMemory memory() const = 0;
  virtual DeviceCapabilities capabilities() const = 0;
  virtual BufferType& buffer_type() = 0;  // default memory

  // Can it run node `id` with sources of its own buffer types? A pure function of the node.
  virtual Support Supports(const Graph& graph, NodeId id) const = 0;
  // Can its kernels read and write tensors in memory of that type directly? No with the reason.
  virtual Support Supports(const BufferType& type) const = 0;
  // The batches that it asks for (batch-mode split, spec B.14a).
  virtual BatchRange preferred_batch() const { return {}; }
  // Would it like to run `id` although a weight of it lies in host memory and must be copied first?
  virtual bool Wants(const Graph& graph, NodeId id) const = 0;
  // Bytes of scratch memory that running `id` takes beside its tensors; for memory plans.
  virtual int64_t WorkspaceBytes(const Graph& graph, NodeId id) const = 0;

  // A buffer over host memory that the caller keeps valid and unchanged in size. Errors:
  // UNIMPLEMENTED.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> WrapHostMemory(void* data, int64_t bytes,
                                                                 BufferUsage usage) = 0;
  virtual absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(BackendOptions options) = 0;
};

}  // namespace weft
