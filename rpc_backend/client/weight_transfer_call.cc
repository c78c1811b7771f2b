#include "rpc_backend/client/weight_transfer_call.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "rpc_backend/protocol/content_digest.h"
#include "rpc_backend/protocol/manifest_codec.h"

namespace weft {
namespace {

constexpr std::string_view kTakeVerb = "TakeWeights";
constexpr std::string_view kGiveVerb = "GiveWeights";
// The taking side notices when nothing comes any more.
constexpr std::chrono::hours kGiveTime{24};

}  // namespace

int64_t ContentBytes(const RemoteWeightItem& item) {
  int64_t bytes = 0;
  for (const RemoteWeightSlice& slice : item.slices) bytes += slice.bytes;
  return bytes;
}

absl::StatusOr<TransferOutcome> WeightTransferCall::FromHere(
    absl::Span<const MovingWeight> weights, const PieceReader& reader,
    const std::function<void(int64_t bytes)>& sent) {
  std::vector<WeightSpan> spans;
  WeightTransfer transfer;
  transfer.epoch = link_.epoch();
  transfer.peer = taker_number_;
  transfer.number = link_.NextTransfer();
  transfer.stop = [this] { return over_.load() || (cancel_ != nullptr && cancel_->load()); };
  // The call that takes is the first to notice that nothing moves.
  transfer.stall = 2 * taker_.options().stall_timeout + std::chrono::seconds(1);
  for (const MovingWeight& weight : weights) {
    spans.push_back({ContentBytes(items_[weight.item]), weight.here});
    if (items_[weight.item].digests.empty()) transfer.with_digests = true;
  }
  return Run(
      link_.coordinator_number(), transfer.number, transfer.with_digests, weights,
      [&] { return SendWeightPieces(link_.port(), transfer, spans, reader, sent); }, [] {});
}

absl::StatusOr<TransferOutcome> WeightTransferCall::FromPeer(int32_t giver,
                                                             absl::Span<const MovingWeight> weights,
                                                             const std::string& manifest,
                                                             bool ignore_files) {
  WorkerConnection& connection = link_.worker(giver).connection();
  proto::GiveWeightsRequest request;
  request.set_session(connection.session());
  request.set_transfer(link_.NextTransfer());
  request.set_peer(taker_number_);
  request.set_manifest(manifest);
  request.set_sha256(ContentDigest(manifest));
  request.set_ignore_files(ignore_files);
  for (const MovingWeight& weight : weights) request.add_starts(weight.here);
  WorkerConnection::Call call(connection, kGiveTime);
  const auto give = [&] {
    proto::GiveWeightsReply reply;
    const absl::Status status =
        call.Result(kGiveVerb, connection.stub().GiveWeights(&call.context(), request, &reply));
    return status.ok() ? connection.CheckReply(kGiveVerb, reply) : status;
  };
  return Run(giver, request.transfer(), /*with_digests=*/false, weights, give,
             [&call] { call.context().TryCancel(); });
}

absl::StatusOr<TransferOutcome> WeightTransferCall::Run(int32_t peer, int64_t number,
                                                        bool with_digests,
                                                        absl::Span<const MovingWeight> weights,
                                                        const std::function<absl::Status()>& give,
                                                        const std::function<void()>& stop_giving) {
  proto::TakeWeightsRequest request;
  request.set_session(taker_.session());
  request.set_transfer(number);
  request.set_peer(peer);
  request.set_with_digests(with_digests);
  for (const MovingWeight& weight : weights) {
    proto::TakenWeight& taken = *request.add_weights();
    taken.set_weight(items_[weight.item].weight);
    taken.set_digests(JoinDigests(items_[weight.item].digests));
  }
  TransferOutcome outcome;
  over_ = false;
  ASSIGN_OR_RETURN(std::thread giver, StartThread([&] {
                     outcome.giver = give();
                     if (!outcome.giver.ok() && !over_) EndTaking(number);
                   }));
  proto::TakeWeightsReply reply;
  const absl::Status taken = Take(request, reply);
  over_ = true;
  if (!taken.ok()) stop_giving();
  giver.join();
  {
    MutexLock lock(mutex_);
    if (!taken.ok() && cut_ && taker_.lost().ok()) return taker_.Explain(outcome.giver);
  }
  RETURN_IF_ERROR(taken);
  // It was stopped since the other side is done, and that one says why in what failed.
  const bool cancelled_by_caller = cancel_ != nullptr && cancel_->load();
  if (absl::IsCancelled(outcome.giver) && !cancelled_by_caller) outcome.giver = absl::OkStatus();
  ASSIGN_OR_RETURN(outcome.failed, FailuresOf(reply, weights));
  return outcome;
}

void WeightTransferCall::EndTaking(int64_t number) {
  WeightTransfer transfer;
  transfer.epoch = link_.epoch();
  transfer.peer = taker_number_;
  transfer.number = number;
  if (EndWeightPieces(link_.port(), transfer).ok()) return;
  MutexLock lock(mutex_);
  cut_ = true;
  if (taking_ != nullptr) taking_->TryCancel();
}

absl::Status WeightTransferCall::Take(const proto::TakeWeightsRequest& request,
                                      proto::TakeWeightsReply& last) {
  WorkerConnection::Call call(taker_, taker_.options().stall_timeout, cancel_);
  {
    MutexLock lock(mutex_);
    taking_ = &call.context();
    if (cut_) taking_->TryCancel();
  }
  const auto stream = taker_.stub().TakeWeights(&call.context(), request);
  proto::TakeWeightsReply reply;
  absl::Status status;
  bool finished = false;
  while (status.ok() && stream->Read(&reply)) {
    call.Moved();
    status = taker_.CheckReply(kTakeVerb, reply);
    if (status.ok() && finished) status = taker_.Nonsense(kTakeVerb, "it finished twice");
    if (!status.ok()) break;
    if (progress) progress(reply.bytes_done());
    finished = reply.finished();
    if (finished) last.Swap(&reply);
  }
  if (!status.ok()) call.context().TryCancel();
  const grpc::Status ended = stream->Finish();
  {
    MutexLock lock(mutex_);
    taking_ = nullptr;
  }
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(call.Result(kTakeVerb, ended));
  if (!finished) return taker_.Nonsense(kTakeVerb, "it ended without a result");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<MovingWeight>> WeightTransferCall::FailuresOf(
    const proto::TakeWeightsReply& reply, absl::Span<const MovingWeight> weights) {
  std::vector<MovingWeight> failed;
  for (const proto::FailedWeight& message : reply.failed()) {
    const auto found = std::find_if(
        weights.begin(), weights.end(),
        [&](const MovingWeight& weight) { return items_[weight.item].weight == message.weight(); });
    const bool known = found != weights.end();
    if (!known || message.here() < found->here || message.here() % kWeightPieceBytes != 0 ||
        message.here() >= ContentBytes(items_[found->item])) {
      return taker_.Nonsense(kTakeVerb, absl::StrCat("weight ", message.weight(),
                                                     " is there up to byte ", message.here()));
    }
    failed.push_back({found->item, message.here(), message.reason()});
  }
  return failed;
}

}  // namespace weft
