// The first part of a load: the worker allocates and takes what it finds by itself. Included by
// sources of this folder only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rpc_backend/client/remote_weights.h"
#include "rpc_backend/client/remote_worker.h"
#include "rpc_backend/client/weight_transfer_call.h"

namespace weft {

// The manifest as it travels, with the checks that the worker will make.
absl::StatusOr<std::string> MakeManifest(RemoteWorker& worker,
                                         absl::Span<const RemoteWeightFile> files,
                                         absl::Span<const RemoteWeightItem> items);

class LoadWeightsCall {
 public:
  // All outlive it.
  LoadWeightsCall(RemoteWorker& worker, absl::Span<const RemoteWeightFile> files,
                  absl::Span<const RemoteWeightItem> items,
                  const LoadRemoteWeightsOptions& options);

  // Fills buffers, weights and remarks of `result`; `report` is called with bytes that are there.
  // Returns the weights of which some are missing.
  absl::StatusOr<std::vector<MovingWeight>> Do(RemoteWeights& result,
                                               const std::function<void(int64_t bytes)>& report);

 private:
  absl::StatusOr<std::vector<MovingWeight>> TakeLoaded(const proto::LoadWeightsReply& reply,
                                                       RemoteWeights& result) const;
  // The buffers that the handles name; of weights in one, the largest end is its size.
  absl::Status MakeBuffers(const proto::LoadWeightsReply& reply, RemoteWeights& result) const;

  RemoteWorker& worker_;
  WorkerConnection& connection_;
  const absl::Span<const RemoteWeightFile> files_;
  const absl::Span<const RemoteWeightItem> items_;
  const LoadRemoteWeightsOptions& options_;
};

}  // namespace weft
