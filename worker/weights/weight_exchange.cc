#include "worker/weights/weight_exchange.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/processors.h"
#include "common/base/status_macros.h"
#include "common/base/task_queue.h"

namespace weft {
namespace {

constexpr int kDigestThreads = 4;
constexpr size_t kWaitingPieces = 4;

// The first thing that went wrong with each weight.
class Failures {
 public:
  void Add(int32_t weight, const absl::Status& status) {
    if (status.ok()) return;
    MutexLock lock(mutex_);
    reasons_.try_emplace(weight, status.message());
  }
  // Of a weight that is not complete; `otherwise` if nothing else is known.
  std::string Reason(int32_t weight, const absl::Status& otherwise) {
    MutexLock lock(mutex_);
    const auto found = reasons_.find(weight);
    return found == reasons_.end() ? std::string(otherwise.message()) : found->second;
  }

 private:
  Mutex mutex_;
  std::map<int32_t, std::string> reasons_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::vector<WeightSpan>> SpansOf(const LoadManifest& manifest,
                                                absl::Span<const int64_t> starts) {
  if (starts.size() != manifest.weights.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(starts.size(), " starts of ", manifest.weights.size(), " weights"));
  }
  std::vector<WeightSpan> spans;
  for (size_t i = 0; i < starts.size(); ++i) {
    const WeightSpan span{ContentBytes(manifest.weights[i]), starts[i]};
    const bool whole = span.start == span.bytes || span.start % kWeightPieceBytes == 0;
    if (span.start < 0 || span.start > span.bytes || !whole) {
      return absl::InvalidArgumentError(absl::StrCat("weight '", manifest.weights[i].name, "' of ",
                                                     span.bytes, " bytes from ", span.start));
    }
    spans.push_back(span);
  }
  return spans;
}

}  // namespace

absl::StatusOr<std::vector<FailedTake>> TakeWeights(
    MessagePort& port, const WeightTransfer& transfer, OpenWeights& open,
    absl::Span<const WeightToTake> weights, const std::function<void(int64_t bytes)>& progress) {
  ASSIGN_OR_RETURN(const std::vector<WeightSpan> spans, open.Prepare(weights));
  Failures failures;
  absl::Status status;
  {
    TaskQueue queue(std::min(kDigestThreads, AvailableProcessors()), kWaitingPieces);
    const auto check = [&](WeightPiece& piece) {
      const int32_t weight = weights[piece.weight].weight;
      const auto bytes = absl::MakeConstSpan(piece.payload).first(static_cast<size_t>(piece.bytes));
      failures.Add(weight, open.TakePiece(weight, piece.offset, bytes,
                                          transfer.with_digests ? &piece.digest : nullptr));
      port.Recycle(std::move(piece.payload));
    };
    status = ReceiveWeightPieces(port, transfer, spans, [&](WeightPiece piece) {
      if (progress) progress(piece.bytes);
      // What a queue holds is copied.
      queue.Add(
          [&check, shared = std::make_shared<WeightPiece>(std::move(piece))] { check(*shared); });
    });
  }
  if (absl::IsCancelled(status)) return status;
  std::vector<FailedTake> failed;
  for (size_t i = 0; i < weights.size(); ++i) {
    const int32_t weight = weights[i].weight;
    const int64_t here = open.Here(weight);
    if (here < spans[i].bytes) failed.push_back({weight, here, failures.Reason(weight, status)});
  }
  return failed;
}

absl::StatusOr<int64_t> GiveWeights(MessagePort& port, const WeightTransfer& transfer,
                                    const WeightSources& sources, const LoadManifest& manifest,
                                    absl::Span<const int64_t> starts) {
  ASSIGN_OR_RETURN(const std::vector<WeightSpan> spans, SpansOf(manifest, starts));
  std::vector<WeightBytes> found;
  for (const WeightEntry& weight : manifest.weights) {
    ASSIGN_OR_RETURN(WeightBytes bytes, sources.Find(weight));
    found.push_back(std::move(bytes));
  }
  const PieceReader reader = [&found](size_t weight, int64_t offset, int64_t bytes,
                                      std::vector<absl::Span<const uint8_t>>& parts) {
    found[weight].Take(offset, bytes, parts);
    return absl::OkStatus();
  };
  int64_t sent = 0;
  RETURN_IF_ERROR(
      SendWeightPieces(port, transfer, spans, reader, [&sent](int64_t bytes) { sent += bytes; }));
  return sent;
}

}  // namespace weft
