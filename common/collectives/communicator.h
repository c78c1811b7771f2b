// What the ranks of a group do together, over memory of the host: all-reduce, all-gather,
// reduce-scatter and broadcast.
//
// A collective is named by (step, id), the same on all ranks. Ranks may come to it at different
// times; each waits until its own part is done. What one rank does is one call on one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/collectives/schedule.h"
#include "common/collectives/schedule_runner.h"
#include "common/tensor/dtype.h"

namespace weft {

// One rank's end. One thread at a time calls it, but Abort, which any thread may call.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int32_t rank() const = 0;
  virtual int32_t size() const = 0;

  // `values` is the whole vector of shape.TotalElements() elements (of all-gather with the own part
  // filled in). `wire` as what it travels; kF32 and kI32 as it is. Errors: INVALID_ARGUMENT for a
  // shape of other ranks or a vector of another size; DEADLINE_EXCEEDED naming the rank that did
  // not come; CANCELLED by call.stop; UNAVAILABLE for a lost rank; the reason of Abort. After an
  // error the ranks no longer agree: abort the others.
  virtual absl::Status Run(const CollectiveShape& shape, DType wire, absl::Span<float> values,
                           const CollectiveCall& call) = 0;
  // Every rank that waits in Run, here and elsewhere, ends with `reason`, and so does every later
  // call. For other processes their ports do that.
  virtual void Abort(absl::Status reason) = 0;

  // The usual four. `counts` are elements by rank.
  absl::Status AllReduce(absl::Span<float> values, CollectiveAlgorithm algorithm, DType wire,
                         const CollectiveCall& call);
  absl::Status AllGather(absl::Span<const int64_t> counts, absl::Span<float> values, DType wire,
                         const CollectiveCall& call);
  absl::Status ReduceScatter(absl::Span<const int64_t> counts, absl::Span<float> values, DType wire,
                             const CollectiveCall& call);
  absl::Status Broadcast(int32_t root, absl::Span<float> values, DType wire,
                         const CollectiveCall& call);

 protected:
  // hosts()[r] as CollectiveShape::hosts.
  virtual const std::vector<int32_t>& hosts() const = 0;
};

// Runs schedules over a link; keeps those it has made.
class ScheduledCommunicator final : public Communicator {
 public:
  // `link` is that rank's and outlives it.
  ScheduledCommunicator(int32_t rank, std::vector<int32_t> hosts, RankLink& link)
      : rank_(rank), hosts_(std::move(hosts)), link_(link) {}

  int32_t rank() const override { return rank_; }
  int32_t size() const override { return static_cast<int32_t>(hosts_.size()); }
  absl::Status Run(const CollectiveShape& shape, DType wire, absl::Span<float> values,
                   const CollectiveCall& call) override;
  void Abort(absl::Status reason) override { link_.Abort(std::move(reason)); }

 protected:
  const std::vector<int32_t>& hosts() const override { return hosts_; }

 private:
  const int32_t rank_;
  const std::vector<int32_t> hosts_;
  RankLink& link_;
  struct Known {
    CollectiveShape shape;
    std::vector<Round> rounds;
  };
  std::vector<Known> known_;  // a model has few shapes
  RunnerScratch scratch_;
};

}  // namespace weft
