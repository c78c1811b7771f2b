// Collectives inside a program: who the ranks are, how messages reach them, and the runs of one
// device's stream.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/collectives/local_exchange.h"
#include "common/collectives/schedule_runner.h"
#include "common/program/collective_meter.h"
#include "common/program/edge_port.h"
#include "common/program/program.h"

namespace weft {

struct Step;

// A collective as one device performs it. All ranks' vectors have `elements` elements: of an
// all_reduce the tensor's, of an all_gather the parts of the ranks behind each other, each packed.
struct PreparedCollective {
  const ProgramCommunicator* communicator = nullptr;  // the program's
  int32_t id = 0;
  int32_t rank = 0;
  DType wire = DType::kF32;
  CollectiveUse use = CollectiveUse::kAllGather;
  std::vector<Round> rounds;  // of this rank
  int64_t elements = 0;
  int64_t own_begin = 0;  // where this rank's source goes in the vector
  int64_t own_elements = 0;
  // Of an all_gather: the result is `rows` times the ranks' runs of `widths` elements. With one row
  // it is the vector.
  int64_t rows = 1;
  std::vector<int64_t> widths;
};

// The collective of a node that is one, of a verified program or plan, among ranks on these hosts
// (CollectiveShape::hosts).
CollectiveShape CollectiveShapeOf(const Node& node, CollectiveAlgorithm algorithm,
                                  std::vector<int32_t> hosts);
DType CollectiveWireOf(const Node& node);

// `command` is one of a verified program's stream of that device. The program outlives the result.
std::unique_ptr<const PreparedCollective> PrepareCollective(const Program& program,
                                                            const CollectiveCommand& command,
                                                            int32_t device);

// From the vector, rank by rank, to the result, row by row. Both have collective.elements.
void JoinParts(const PreparedCollective& collective, absl::Span<const float> vector, float* result);

// How the streams of one process reach the ranks here and elsewhere.
struct CollectiveChannels {
  LocalExchange& local;              // a place per device
  EdgePort* port = nullptr;          // to other processes; null: no program has ranks there
  CollectiveMeter* meter = nullptr;  // may be null
};

class CollectiveRunner {
 public:
  // The channels outlive it.
  CollectiveRunner(int32_t device, const CollectiveChannels& channels)
      : device_(device), channels_(channels) {}

  // Waits for the other ranks. Errors name the rank: DEADLINE_EXCEEDED at the step's deadline;
  // CANCELLED once the step was stopped; those of EdgePort. `waited` grows by the seconds until
  // messages of others were there.
  absl::Status Run(const Step& step, const PreparedCollective& collective, absl::Span<float> vector,
                   double& waited);

 private:
  const int32_t device_;
  const CollectiveChannels channels_;
  const SystemClock clock_;
  RunnerScratch scratch_;
};

}  // namespace weft
