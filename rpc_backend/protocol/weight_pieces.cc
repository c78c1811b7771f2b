#include "rpc_backend/protocol/weight_pieces.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/processors.h"
#include "common/base/status_macros.h"
#include "common/base/task_queue.h"
#include "rpc_backend/protocol/message_kinds.h"

namespace weft {
namespace {

constexpr uint32_t kKind = static_cast<uint32_t>(MessageKind::kWeights);
constexpr int kAckEvery = 4;  // pieces
constexpr int kDigestThreads = 4;
constexpr std::chrono::milliseconds kStopChecks{200};

static_assert(kAckEvery < kWeightWindow);

// Walks over the pieces of a list of weights.
class PieceCursor {
 public:
  explicit PieceCursor(absl::Span<const WeightSpan> weights) : weights_(weights) { Settle(); }

  bool done() const { return weight_ == weights_.size(); }
  size_t weight() const { return weight_; }
  int64_t offset() const { return offset_; }
  int64_t bytes() const { return std::min(kWeightPieceBytes, weights_[weight_].bytes - offset_); }
  void Next() {
    offset_ += bytes();
    if (offset_ < weights_[weight_].bytes) return;
    ++weight_;
    Settle();
  }

 private:
  // To the first weight from here on of which something travels.
  void Settle() {
    while (weight_ < weights_.size() && weights_[weight_].start >= weights_[weight_].bytes) {
      ++weight_;
    }
    if (!done()) offset_ = weights_[weight_].start;
  }

  absl::Span<const WeightSpan> weights_;
  size_t weight_ = 0;
  int64_t offset_ = 0;
};

MessageHeader HeaderOf(const WeightTransfer& transfer, int32_t id) {
  return {.epoch = transfer.epoch, .kind = kKind, .step = transfer.number, .id = id};
}

// The message with that id from the other side. `given_up`, if it is not empty, is asked now and
// then.
absl::StatusOr<Message> Await(MessagePort& port, const WeightTransfer& transfer, int32_t id,
                              const std::function<bool()>& given_up) {
  const SystemClock clock;
  const Clock::TimePoint deadline = clock.Now() + transfer.stall;
  const MessageFilter filter{
      .kinds = KindBit(kKind), .peer = transfer.peer, .step = transfer.number, .id = id};
  while (true) {
    const Clock::TimePoint now = clock.Now();
    absl::StatusOr<Message> message = port.Receive(filter, std::min(deadline, now + kStopChecks));
    if (message.ok() || !absl::IsDeadlineExceeded(message.status())) return message;
    if (transfer.stop && transfer.stop()) return absl::CancelledError("loading was cancelled");
    if (given_up && given_up()) return absl::DataLossError("the sender gave up");
    if (clock.Now() >= deadline) return message;
  }
}

// Reads and digests pieces ahead of the one that is sent.
class PieceMaker {
 public:
  struct Piece {
    int64_t bytes = 0;
    std::vector<absl::Span<const uint8_t>> parts;
    Sha256Digest digest;
    absl::Status status;
    bool ready = false;
  };

  PieceMaker(absl::Span<const WeightSpan> weights, const PieceReader& reader, bool with_digests)
      : ahead_(weights),
        reader_(reader),
        with_digests_(with_digests),
        // Where nothing is digested there is nothing to do ahead.
        queue_(with_digests ? std::min(kDigestThreads, AvailableProcessors()) : 0, kWeightWindow) {
    for (size_t i = 0; i < pieces_.size(); ++i) Start();
  }

  bool done() const { return next_ == started_; }
  // The next one; valid until the call after it.
  Piece& Next() {
    if (next_ > 0) Start();  // in the place of the one before
    Piece& piece = pieces_[next_++ % pieces_.size()];
    MutexLock lock(mutex_);
    while (!piece.ready) changed_.Wait(mutex_);
    return piece;
  }

 private:
  void Start() {
    if (ahead_.done()) return;
    Piece& piece = pieces_[started_++ % pieces_.size()];
    piece = Piece();
    piece.bytes = ahead_.bytes();
    queue_.Add([this, &piece, weight = ahead_.weight(), offset = ahead_.offset()] {
      piece.status = reader_(weight, offset, piece.bytes, piece.parts);
      if (piece.status.ok() && with_digests_) {
        Sha256 digest;
        for (const absl::Span<const uint8_t> part : piece.parts) digest.Update(part);
        piece.digest = digest.Finish();
      }
      MutexLock lock(mutex_);
      piece.ready = true;
      changed_.NotifyAll();
    });
    ahead_.Next();
  }

  PieceCursor ahead_;
  const PieceReader& reader_;
  const bool with_digests_;
  Mutex mutex_;
  CondVar changed_;
  std::array<Piece, 8> pieces_;
  size_t started_ = 0;
  size_t next_ = 0;
  TaskQueue queue_;  // the first to go
};

// What the receiver says of its progress.
class Acknowledgements {
 public:
  Acknowledgements(MessagePort& port, const WeightTransfer& transfer)
      : port_(port), transfer_(transfer) {}

  absl::Status AwaitTaken(int64_t pieces) {
    while (taken_ < pieces) {
      ASSIGN_OR_RETURN(const Message message, Await(port_, transfer_, next_++, {}));
      uint32_t taken = 0;
      if (message.payload.size() == sizeof(taken)) {
        std::memcpy(&taken, message.payload.data(), sizeof(taken));
      }
      if (taken <= taken_) {
        return absl::InternalError(
            absl::StrCat(PeerText(port_, transfer_.peer), " acknowledged no piece of a weight"));
      }
      taken_ = taken;
    }
    return absl::OkStatus();
  }

 private:
  MessagePort& port_;
  const WeightTransfer& transfer_;
  int32_t next_ = 0;
  int64_t taken_ = 0;
};

absl::Status Acknowledge(MessagePort& port, const WeightTransfer& transfer, int32_t id,
                         int64_t taken) {
  const auto count = static_cast<uint32_t>(taken);
  std::array<uint8_t, sizeof(count)> bytes = {};
  std::memcpy(bytes.data(), &count, sizeof(count));
  return SendBytes(port, transfer.peer, HeaderOf(transfer, id), bytes);
}

}  // namespace

absl::Status SendWeightPieces(MessagePort& port, const WeightTransfer& transfer,
                              absl::Span<const WeightSpan> weights, const PieceReader& reader,
                              const std::function<void(int64_t bytes)>& sent) {
  PieceMaker maker(weights, reader, transfer.with_digests);
  Acknowledgements acknowledgements(port, transfer);
  int32_t count = 0;
  for (; !maker.done(); ++count) {
    if (transfer.stop && transfer.stop()) return absl::CancelledError("loading was cancelled");
    PieceMaker::Piece& piece = maker.Next();
    RETURN_IF_ERROR(piece.status);
    RETURN_IF_ERROR(acknowledgements.AwaitTaken(count + 1 - kWeightWindow));
    if (transfer.with_digests) piece.parts.emplace_back(piece.digest.bytes);
    RETURN_IF_ERROR(port.Send(transfer.peer, HeaderOf(transfer, count), piece.parts));
    if (sent) sent(piece.bytes);
  }
  return acknowledgements.AwaitTaken(count);
}

absl::Status EndWeightPieces(MessagePort& port, const WeightTransfer& transfer) {
  return SendBytes(port, transfer.peer, HeaderOf(transfer, kNoMorePieces), {});
}

absl::Status ReceiveWeightPieces(MessagePort& port, const WeightTransfer& transfer,
                                 absl::Span<const WeightSpan> weights,
                                 const std::function<void(WeightPiece piece)>& take) {
  int32_t acknowledged = 0;
  int32_t count = 0;
  PieceCursor cursor(weights);
  const auto given_up = [&] {
    const MessageFilter filter{.kinds = KindBit(kKind),
                               .peer = transfer.observer,
                               .step = transfer.number,
                               .id = kNoMorePieces};
    return port.Receive(filter, SystemClock().Now()).ok();
  };
  while (!cursor.done()) {
    ASSIGN_OR_RETURN(Message message, Await(port, transfer, count, given_up));
    WeightPiece piece;
    piece.weight = cursor.weight();
    piece.offset = cursor.offset();
    piece.bytes = cursor.bytes();
    piece.payload = std::move(message.payload);
    const size_t tail = transfer.with_digests ? Sha256Digest::kBytes : 0;
    if (piece.payload.size() != static_cast<size_t>(piece.bytes) + tail) {
      return absl::DataLossError(absl::StrCat("the sender sent a piece of ", piece.payload.size(),
                                              " bytes instead of ", piece.bytes + tail));
    }
    std::copy_n(piece.payload.data() + piece.bytes, tail, piece.digest.bytes.begin());
    cursor.Next();
    ++count;
    if (cursor.done() || count % kAckEvery == 0) {
      RETURN_IF_ERROR(Acknowledge(port, transfer, acknowledged++, count));
    }
    take(std::move(piece));
  }
  return absl::OkStatus();
}

}  // namespace weft
