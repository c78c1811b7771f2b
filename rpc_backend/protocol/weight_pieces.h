// Weights on their way between two processes of a session, over its data plane (kind kWeights).
//
// A transfer has a number, which the coordinator gives out and which is the step of its messages.
// Both ends know the list of weights, how many bytes each has and from which on it is to travel.
//
//   to the receiver  id = 0, 1, 2 ...  the next piece: at most 1 MiB of one weight; behind it, if
//                                      the transfer has digests, its SHA-256
//                    id = kNoMorePieces from the coordinator: nothing; the sender gave up
//   to the sender    id = 0, 1, 2 ...  how many pieces were taken so far, 4 bytes, lowest first
//
// The sender keeps at most kWeightWindow pieces on their way, so neither side holds more.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/digest/sha256.h"
#include "common/transport/message_port.h"

namespace weft {

inline constexpr int64_t kWeightPieceBytes = int64_t{1} << 20;
inline constexpr int kWeightWindow = 16;
inline constexpr int32_t kNoMorePieces = std::numeric_limits<int32_t>::max();

// Pieces of so many bytes.
inline constexpr int64_t WeightPieceCount(int64_t bytes) {
  return bytes / kWeightPieceBytes + (bytes % kWeightPieceBytes != 0 ? 1 : 0);
}

struct WeightTransfer {
  uint32_t epoch = 0;
  int32_t peer = 0;      // the other side
  int32_t observer = 0;  // for receivers: the process that says when the sender gave up
  int64_t number = 0;
  bool with_digests = false;
  std::chrono::milliseconds stall{30000};  // without a message for so long it fails
  std::function<bool()> stop;              // asked now and then; may be empty
};

// One weight of a transfer: bytes [start, bytes) of its content travel. `start` begins a piece.
struct WeightSpan {
  int64_t bytes = 0;
  int64_t start = 0;
};

// The parts that make up [offset, offset + bytes) of a weight; their memory lives until the
// transfer ends. Called by several threads.
using PieceReader = std::function<absl::Status(size_t weight, int64_t offset, int64_t bytes,
                                               std::vector<absl::Span<const uint8_t>>& parts)>;

// Sends everything, digested by threads of its own while the pieces before are on their way;
// returns once the receiver has taken it. `sent` is called with the bytes of each piece and may be
// empty. Errors: those of the reader and of the port; CANCELLED; DEADLINE_EXCEEDED. The receiver is
// not told: see EndWeightPieces.
absl::Status SendWeightPieces(MessagePort& port, const WeightTransfer& transfer,
                              absl::Span<const WeightSpan> weights, const PieceReader& reader,
                              const std::function<void(int64_t bytes)>& sent);
// Of the observer of a transfer: tells the receiver (`transfer.peer`) that no more will come.
absl::Status EndWeightPieces(MessagePort& port, const WeightTransfer& transfer);

// A piece as it came: `bytes` of content, and the digest that the sender gave it.
struct WeightPiece {
  size_t weight = 0;  // position in the list
  int64_t offset = 0;
  int64_t bytes = 0;
  Payload payload;
  Sha256Digest digest;  // zero unless the transfer has digests
};

// Takes everything in order; `take` keeps or drops a piece. Errors: those of the port, naming the
// peer; CANCELLED; DEADLINE_EXCEEDED; DATA_LOSS if the sender gave up or sent a piece of another
// size.
absl::Status ReceiveWeightPieces(MessagePort& port, const WeightTransfer& transfer,
                                 absl::Span<const WeightSpan> weights,
                                 const std::function<void(WeightPiece piece)>& take);

}  // namespace weft
