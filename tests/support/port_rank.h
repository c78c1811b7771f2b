// One rank of a communicator whose ranks are processes with message ports: for tests and benchmarks
// of collectives without workers around them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/program/collective_runner.h"
#include "common/program/step.h"
#include "common/transport/transport.h"
#include "rpc_backend/protocol/port_edges.h"

namespace weft {

struct PortRankOptions {
  int32_t rank = 0;
  int32_t ranks = 2;
  std::string folder;      // where the ranks leave their addresses for each other
  std::string transports;  // as UcxTransportOptions
  bool reader = true;      // a thread that waits for other messages, as a worker has
};

class PortRank {
 public:
  // Joins the others. Errors: those of ports; DEADLINE_EXCEEDED after 30 s.
  static absl::StatusOr<std::unique_ptr<PortRank>> Join(const PortRankOptions& options);
  ~PortRank();

  // Sums `values` over the ranks, as collective 1 of that step. All are on one machine.
  absl::Status AllReduce(int64_t step, CollectiveAlgorithm algorithm, DType wire,
                         absl::Span<float> values, Clock::TimePoint deadline);
  std::string transport();  // of the first peer

 private:
  explicit PortRank(const PortRankOptions& options) : options_(options), local_(1) {}
  absl::Status Connect();
  absl::StatusOr<std::string> AddressOf(int32_t rank, Clock::TimePoint deadline) const;
  PreparedCollective& Prepared(CollectiveAlgorithm algorithm, DType wire, int64_t elements);

  const PortRankOptions options_;
  ProgramCommunicator communicator_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<MessagePort> port_;
  std::unique_ptr<PortEdges> edges_;
  LocalExchange local_;
  std::unique_ptr<CollectiveRunner> runner_;
  Step step_;
  struct Known {
    CollectiveAlgorithm algorithm;
    DType wire;
    PreparedCollective collective;
  };
  std::vector<std::unique_ptr<Known>> known_;
  std::atomic<bool> stop_ = false;
  std::thread reader_;
};

}  // namespace weft
