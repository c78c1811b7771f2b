// One transfer of weights to a worker, from this process or from another worker: both ends at the
// same time. Included by sources of this folder only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "rpc_backend/client/fleet_link.h"
#include "rpc_backend/client/remote_weights.h"
#include "rpc_backend/client/worker_connection.h"
#include "rpc_backend/protocol/weight_pieces.h"

namespace weft {

// Bytes of all slices.
int64_t ContentBytes(const RemoteWeightItem& item);

// A weight that is on its way, and how many of its first bytes are there.
struct MovingWeight {
  size_t item = 0;  // position among the items of a load
  int64_t here = 0;
  std::string failure;  // why it stopped there
};

struct TransferOutcome {
  std::vector<MovingWeight> failed;  // the others are complete
  // Why the giving side ended early; OK if it did not.
  absl::Status giver;
};

class WeightTransferCall {
 public:
  // To worker `taker`. All outlive it. `cancel` may be null.
  WeightTransferCall(FleetLink& link, int32_t taker, absl::Span<const RemoteWeightItem> items,
                     const std::atomic<bool>* cancel)
      : link_(link),
        taker_(link.worker(taker).connection()),
        taker_number_(taker),
        items_(items),
        cancel_(cancel) {}

  // Called from the thread that calls, with the bytes that came so far.
  std::function<void(int64_t bytes)> progress;

  // The bytes come from this process. `sent` is called by another thread.
  absl::StatusOr<TransferOutcome> FromHere(absl::Span<const MovingWeight> weights,
                                           const PieceReader& reader,
                                           const std::function<void(int64_t bytes)>& sent);
  // From worker `giver`, which said that it has them, as that manifest lists them; digests are
  // known.
  absl::StatusOr<TransferOutcome> FromPeer(int32_t giver, absl::Span<const MovingWeight> weights,
                                           const std::string& manifest, bool ignore_files);

 private:
  // Has `give` run on another thread while the worker takes. It ends soon once `over_` is set, or
  // when `stop_giving` is called. Where it fails, taking ends as well.
  absl::StatusOr<TransferOutcome> Run(int32_t peer, int64_t number, bool with_digests,
                                      absl::Span<const MovingWeight> weights,
                                      const std::function<absl::Status()>& give,
                                      const std::function<void()>& stop_giving);
  // The giving side has failed: the taking one takes what is on its way, or is cut off.
  void EndTaking(int64_t number);
  absl::Status Take(const proto::TakeWeightsRequest& request, proto::TakeWeightsReply& last);
  absl::StatusOr<std::vector<MovingWeight>> FailuresOf(const proto::TakeWeightsReply& reply,
                                                       absl::Span<const MovingWeight> weights);

  FleetLink& link_;
  WorkerConnection& taker_;
  const int32_t taker_number_;
  const absl::Span<const RemoteWeightItem> items_;
  const std::atomic<bool>* const cancel_;
  std::atomic<bool> over_ = false;
  Mutex mutex_;
  grpc::ClientContext* taking_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace weft
