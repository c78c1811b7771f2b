// Weights to and from other processes of a session (rpc_backend/protocol/weight_pieces.h).
//
// Nobody can ask a worker for bytes: its own coordinator, which named the peer, tells it what to
// give to whom, and what is taken is compared with digests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/transport/message_port.h"
#include "rpc_backend/protocol/manifest_codec.h"
#include "rpc_backend/protocol/weight_pieces.h"
#include "worker/weights/open_weights.h"
#include "worker/weights/weight_sources.h"

namespace weft {

// A weight of which not all bytes came, or not the right ones.
struct FailedTake {
  int32_t weight = 0;
  int64_t here = 0;  // its first bytes that are there
  std::string reason;
};

// Takes what is open of `weights` from a peer, digesting in threads of its own. What goes wrong
// with one weight, or with the peer, ends up in the result; the others are complete. `progress` is
// called with the bytes of each piece that came and may be empty. Errors: those of
// OpenWeights::Prepare; CANCELLED.
absl::StatusOr<std::vector<FailedTake>> TakeWeights(
    MessagePort& port, const WeightTransfer& transfer, OpenWeights& open,
    absl::Span<const WeightToTake> weights, const std::function<void(int64_t bytes)>& progress);

// Gives the weights of a manifest to a peer, each from its start on. Returns the bytes. Errors:
// INVALID_ARGUMENT unless each start begins a piece of its weight; NOT_FOUND naming a weight; those
// of SendWeightPieces.
absl::StatusOr<int64_t> GiveWeights(MessagePort& port, const WeightTransfer& transfer,
                                    const WeightSources& sources, const LoadManifest& manifest,
                                    absl::Span<const int64_t> starts);

}  // namespace weft
