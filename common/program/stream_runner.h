// Runs one device's part of a step on its backend.
//
// First the updates of page tables and the page copies, also in a step that was stopped, since
// later ones rely on them (decision 13); then the inputs, the commands of the stream and the
// outputs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/device/device.h"
#include "common/program/collective_runner.h"
#include "common/program/collective_thread.h"
#include "common/program/edge_port.h"
#include "common/program/session_memory.h"
#include "common/program/step.h"

namespace weft {

// Sees what ObserveCommands show; false ends the step. Called on the thread of the device that
// computed the tensor, of several devices at once.
using StepObserver = std::function<bool(int64_t step, int32_t tag, absl::Span<const uint8_t>)>;

// How the streams of a step wait for each other on the host: a wait for an event that was never
// recorded would pass at once.
class StepEvents {
 public:
  virtual ~StepEvents() = default;
  virtual void MarkRecorded(Step& step, int32_t event) = 0;
  // Called on the thread of `device`. False: the step was stopped before the event was recorded.
  virtual bool AwaitRecorded(Step& step, int32_t event, int32_t device) = 0;
};

// Of what a stream did in a step, that which is not computing.
struct StreamTimes {
  double wait_seconds = 0;      // for other streams and processes
  double wire_seconds = 0;      // messages of collectives: encoded, sent, taken in
  double hand_off_seconds = 0;  // to and from other processes: sent, uploaded
};

// What a stream meets outside of its device.
struct StreamContext {
  const SessionMemory& memory;
  const StepObserver& observer;  // may be empty
  StepEvents& events;
  EdgePort* edges = nullptr;  // null: no program has edges
  CollectiveChannels collectives;
};

class StreamRunner {
 public:
  // All outlive it.
  StreamRunner(int32_t device, Backend& backend, const StreamContext& context)
      : device_(device),
        backend_(backend),
        memory_(context.memory),
        observer_(context.observer),
        events_(context.events),
        edges_(context.edges),
        collectives_(device, context.collectives),
        detached_(device, context.collectives) {}

  // Queues it all. Ends early, without an error, once the step was stopped. What was queued has not
  // finished when it returns. `times` is added to.
  absl::Status Run(Step& step, StreamTimes& times);
  // Call after Run, and after the step was stopped if that failed: waits for collectives that are
  // still under way.
  void Drain();

 private:
  // A collective while the ranks exchange.
  struct Exchange {
    NodeId node = kNoNode;  // of a detached one
    const PreparedCommand* prepared = nullptr;
    const SlotMemory* result = nullptr;
    absl::Span<float> vector;
    float* joined = nullptr;                 // the result, in host memory
    std::vector<uint8_t>* upload = nullptr;  // that memory, where the device's is another
    std::vector<float> rows;                 // the vector, where the result lies otherwise
  };

  absl::Status ApplyUpdates(const Step& step);
  absl::Status UploadInputs(const Step& step, const PreparedStream& prepared);
  absl::Status RunCommands(Step& step, const PreparedStream& prepared);
  absl::Status FetchOutputs(Step& step, const PreparedStream& prepared);

  // One overload per command.
  absl::Status Execute(Step& step, const ComputeCommand&, const PreparedCommand& prepared);
  absl::Status Execute(Step& step, const CopyCommand&, const PreparedCommand& prepared);
  absl::Status Execute(Step& step, const CopyExpertsCommand& command,
                       const PreparedCommand& prepared);
  absl::Status Execute(Step& step, const ObserveCommand& command, const PreparedCommand& prepared);
  absl::Status Execute(Step& step, const SendCommand& command, const PreparedCommand& prepared);
  absl::Status Execute(Step& step, const ReceiveCommand& command, const PreparedCommand& prepared);
  absl::Status Execute(Step& step, const CollectiveCommand& command,
                       const PreparedCommand& prepared);
  absl::Status Execute(Step& step, const FinishCommand& command, const PreparedCommand& prepared);
  absl::Status Execute(Step& step, const RecordCommand&, const PreparedCommand& prepared);
  absl::Status Execute(Step& step, const WaitCommand&, const PreparedCommand& prepared);

  // The experts that a tensor of the step names; read from the device once per step.
  absl::StatusOr<absl::Span<const int32_t>> UsedExpertsOf(const Graph& graph, NodeId ids,
                                                          const SlotMemory& memory);

  // This rank's source into its place in the vector that the ranks exchange.
  static absl::Status FillVector(const PreparedCollective& collective, const SlotMemory& source,
                                 absl::Span<float> vector);
  // What this rank gives, where the ranks exchange it.
  absl::Status Begin(const PreparedCommand& prepared, const CommandMemory& memory,
                     Exchange& exchange);
  // The result where it belongs; `done` is how the exchange ended.
  absl::Status End(Step& step, const absl::Status& done, const Exchange& exchange);
  Exchange& NextExchange();
  // The bytes of a tensor once all that was queued before is done: where they lie, or in staging_.
  absl::StatusOr<absl::Span<const uint8_t>> ReadBack(const SlotMemory& memory, int64_t bytes);
  // Host memory that the bytes may be received into; its upload may be under way until the step
  // ends.
  std::vector<uint8_t>& NextReceived(int64_t bytes);

  const int32_t device_;
  Backend& backend_;
  const SessionMemory& memory_;
  const StepObserver& observer_;
  StepEvents& events_;
  EdgePort* const edges_;
  CollectiveRunner collectives_;
  CollectiveThread detached_;
  const SystemClock clock_;

  StreamTimes times_;                                                  // of this step
  std::vector<std::pair<NodeId, std::vector<int32_t>>> used_experts_;  // of this step, by ids
  std::vector<uint8_t> staging_;  // bytes of ids, observed and sent tensors
  // Bytes of received tensors, by their order in the step; kept for the next one.
  std::deque<std::vector<uint8_t>> received_;
  size_t received_count_ = 0;                         // of this step
  Exchange exchange_;                                 // of the collective that the stream waits for
  std::vector<std::unique_ptr<Exchange>> under_way_;  // detached ones
  std::vector<std::unique_ptr<Exchange>> spare_;
};

}  // namespace weft
