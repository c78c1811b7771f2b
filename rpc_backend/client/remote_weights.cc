#include "rpc_backend/client/remote_weights.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/processors.h"
#include "common/base/status_macros.h"
#include "common/base/task_queue.h"
#include "common/digest/sha256.h"
#include "rpc_backend/client/fleet_link.h"
#include "rpc_backend/client/load_weights_call.h"
#include "rpc_backend/client/remote_worker.h"
#include "rpc_backend/client/weight_transfer_call.h"
#include "rpc_backend/client/worker_connection.h"
#include "rpc_backend/protocol/content_digest.h"

namespace weft {
namespace {

constexpr std::string_view kFindVerb = "FindWeights";
constexpr std::string_view kTakeVerb = "TakeWeights";
constexpr int kDigestThreads = 4;
// Taken from a peer at a time: what is lost at most where it sends wrong bytes.
constexpr int64_t kPeerBatchBytes = int64_t{256} << 20;
// Bytes that arrived damaged are sent once more.
constexpr int kAttempts = 2;

class Loader {
 public:
  Loader(FleetLink& link, int32_t number, absl::Span<const RemoteWeightFile> files,
         absl::Span<const RemoteWeightItem> items, const SliceReader& reader,
         const LoadRemoteWeightsOptions& options)
      : link_(link),
        number_(number),
        worker_(link.worker(number)),
        files_(files),
        items_(items.begin(), items.end()),
        reader_(reader),
        options_(options) {
    for (const RemoteWeightItem& item : items_) total_ += ContentBytes(item);
  }

  // What the worker finds by itself.
  absl::Status Load();
  // What other workers have.
  absl::Status FromPeers();
  // The rest.
  absl::Status FromHere();
  RemoteWeights TakeResult() { return std::move(result_); }

 private:
  // What one peer is to give.
  struct PeerShare {
    int32_t peer = 0;
    int64_t bytes = 0;
    std::vector<MovingWeight> weights;
  };

  void Report(int64_t done) {
    done_ = std::clamp(done, done_, total_);
    if (options_.progress) options_.progress({done_, total_});
  }
  absl::StatusOr<std::string> ManifestOf(absl::Span<const MovingWeight> weights) const;
  // Which of the open weights that peer has, by position among them.
  absl::StatusOr<std::vector<size_t>> AskPeer(int32_t peer, const std::string& manifest) const;
  // Takes what peers have out of open_.
  std::vector<PeerShare> ShareAmongPeers();
  absl::Status TakeShare(PeerShare share);
  absl::Status TakeBatch(int32_t peer, absl::Span<const MovingWeight> batch, bool& trusted);
  // The parts of some bytes of an item, as the file has them.
  absl::Status ReadParts(const RemoteWeightItem& item, int64_t offset, int64_t bytes,
                         std::vector<absl::Span<const uint8_t>>& parts) const;
  // Of items that have none: of what is on its way to be checked.
  absl::Status Digest(absl::Span<const MovingWeight> weights);
  static int64_t MissingBytes(const RemoteWeightItem& item, const MovingWeight& weight) {
    return ContentBytes(item) - weight.here;
  }

  FleetLink& link_;
  const int32_t number_;
  RemoteWorker& worker_;
  const absl::Span<const RemoteWeightFile> files_;
  std::vector<RemoteWeightItem> items_;  // digests are filled in as they become known
  const SliceReader& reader_;
  const LoadRemoteWeightsOptions& options_;
  int64_t total_ = 0;
  int64_t done_ = 0;
  std::vector<MovingWeight> open_;
  RemoteWeights result_;
};

absl::Status Loader::Load() {
  LoadWeightsCall call(worker_, files_, items_, options_);
  ASSIGN_OR_RETURN(open_, call.Do(result_, [this](int64_t bytes) { Report(bytes); }));
  int64_t here = total_;
  for (const MovingWeight& weight : open_) here -= MissingBytes(items_[weight.item], weight);
  Report(here);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Loader::ManifestOf(absl::Span<const MovingWeight> weights) const {
  std::vector<RemoteWeightItem> items;
  for (const MovingWeight& weight : weights) items.push_back(items_[weight.item]);
  return MakeManifest(worker_, files_, items);
}

absl::Status Loader::ReadParts(const RemoteWeightItem& item, int64_t offset, int64_t bytes,
                               std::vector<absl::Span<const uint8_t>>& parts) const {
  for (const RemoteWeightSlice& slice : item.slices) {
    if (offset < slice.bytes && bytes > 0) {
      const int64_t count = std::min(bytes, slice.bytes - offset);
      ASSIGN_OR_RETURN(const absl::Span<const uint8_t> part,
                       reader_({slice.file, slice.offset + offset, count}));
      if (static_cast<int64_t>(part.size()) != count) {
        return absl::DataLossError(absl::StrCat("weight ", item.weight, " (", item.name, "): read ",
                                                part.size(), " bytes instead of ", count));
      }
      parts.push_back(part);
      bytes -= count;
      offset += count;
    }
    offset -= slice.bytes;
  }
  return absl::OkStatus();
}

absl::Status Loader::Digest(absl::Span<const MovingWeight> weights) {
  Mutex mutex;
  absl::Status status;
  {
    TaskQueue queue(std::min(kDigestThreads, AvailableProcessors()), kDigestThreads);
    for (const MovingWeight& weight : weights) {
      RemoteWeightItem& item = items_[weight.item];
      if (!item.digests.empty()) continue;
      const int64_t content = ContentBytes(item);
      item.digests.resize(static_cast<size_t>(WeightPieceCount(content)));
      for (size_t i = 0; i < item.digests.size(); ++i) {
        queue.Add([&, i, content] {
          const int64_t offset = static_cast<int64_t>(i) * kWeightPieceBytes;
          std::vector<absl::Span<const uint8_t>> parts;
          const absl::Status read =
              ReadParts(item, offset, std::min(kWeightPieceBytes, content - offset), parts);
          Sha256 digest;
          for (const absl::Span<const uint8_t> part : parts) digest.Update(part);
          item.digests[i] = digest.Finish();
          MutexLock lock(mutex);
          status.Update(read);
        });
      }
    }
  }
  return status;
}

// --- from peers ---

absl::StatusOr<std::vector<size_t>> Loader::AskPeer(int32_t peer,
                                                    const std::string& manifest) const {
  WorkerConnection& connection = link_.worker(peer).connection();
  proto::FindWeightsRequest request;
  proto::FindWeightsReply reply;
  request.set_manifest(manifest);
  request.set_sha256(ContentDigest(manifest));
  request.set_ignore_files(options_.ignore_files);
  RETURN_IF_ERROR(connection.Invoke(kFindVerb, &proto::Worker::Stub::FindWeights, request, reply));
  std::vector<size_t> found;
  for (const int32_t id : reply.weights()) {
    const auto at = std::find_if(open_.begin(), open_.end(), [&](const MovingWeight& weight) {
      return items_[weight.item].weight == id;
    });
    if (at == open_.end()) {
      return connection.Nonsense(kFindVerb, absl::StrCat("nobody asked for weight ", id));
    }
    found.push_back(static_cast<size_t>(at - open_.begin()));
  }
  return found;
}

std::vector<Loader::PeerShare> Loader::ShareAmongPeers() {
  const absl::StatusOr<std::string> manifest = ManifestOf(open_);
  std::vector<PeerShare> shares;
  std::vector<std::vector<size_t>> owners(open_.size());  // positions of shares
  for (int32_t peer = 0; manifest.ok() && peer < link_.worker_count(); ++peer) {
    if (peer == number_) continue;
    const absl::StatusOr<std::vector<size_t>> found = AskPeer(peer, *manifest);
    if (!found.ok()) {
      result_.remarks.emplace_back(found.status().message());
      continue;
    }
    for (const size_t at : *found) owners[at].push_back(shares.size());
    shares.push_back({peer, 0, {}});
  }
  std::vector<MovingWeight> rest;
  for (size_t i = 0; i < open_.size(); ++i) {
    if (owners[i].empty()) {
      rest.push_back(open_[i]);
      continue;
    }
    const size_t least =
        *std::min_element(owners[i].begin(), owners[i].end(),
                          [&](size_t a, size_t b) { return shares[a].bytes < shares[b].bytes; });
    shares[least].weights.push_back(open_[i]);
    shares[least].bytes += MissingBytes(items_[open_[i].item], open_[i]);
  }
  open_ = std::move(rest);
  return shares;
}

absl::Status Loader::FromPeers() {
  if (open_.empty() || link_.worker_count() < 2) return absl::OkStatus();
  for (PeerShare& share : ShareAmongPeers()) RETURN_IF_ERROR(TakeShare(std::move(share)));
  return absl::OkStatus();
}

absl::Status Loader::TakeShare(PeerShare share) {
  bool trusted = true;
  size_t begin = 0;
  while (begin < share.weights.size() && trusted) {
    size_t end = begin;
    for (int64_t bytes = 0; end < share.weights.size() && bytes < kPeerBatchBytes; ++end) {
      bytes += MissingBytes(items_[share.weights[end].item], share.weights[end]);
    }
    const auto batch = absl::MakeConstSpan(share.weights).subspan(begin, end - begin);
    RETURN_IF_ERROR(TakeBatch(share.peer, batch, trusted));
    begin = end;
  }
  open_.insert(open_.end(), share.weights.begin() + static_cast<std::ptrdiff_t>(begin),
               share.weights.end());
  return absl::OkStatus();
}

absl::Status Loader::TakeBatch(int32_t peer, absl::Span<const MovingWeight> batch, bool& trusted) {
  // What comes from a peer is compared with what is in the file here.
  RETURN_IF_ERROR(Digest(batch));
  ASSIGN_OR_RETURN(const std::string manifest, ManifestOf(batch));
  WeightTransferCall call(link_, number_, items_, options_.cancel);
  const int64_t before = done_;
  call.progress = [this, before](int64_t bytes) { Report(before + bytes); };
  ASSIGN_OR_RETURN(const TransferOutcome outcome,
                   call.FromPeer(peer, batch, manifest, options_.ignore_files));
  for (const MovingWeight& weight : batch) {
    result_.bytes_from_peers += MissingBytes(items_[weight.item], weight);
    result_.weights[weight.item].source = RemoteWeightSource::kPeer;
  }
  for (const MovingWeight& weight : outcome.failed) {
    result_.bytes_from_peers -= MissingBytes(items_[weight.item], weight);
    result_.weights[weight.item].source = RemoteWeightSource::kStream;
    open_.push_back(weight);
  }
  if (outcome.failed.empty()) return absl::OkStatus();
  trusted = false;
  const absl::string_view why =
      outcome.giver.ok() ? absl::string_view(outcome.failed[0].failure) : outcome.giver.message();
  result_.remarks.push_back(absl::StrCat(link_.worker(peer).label(), " gave wrong bytes or none: ",
                                         why, "; the coordinator sends them instead"));
  return absl::OkStatus();
}

// --- from here ---

absl::Status Loader::FromHere() {
  for (int attempt = 1; !open_.empty(); ++attempt) {
    const std::vector<MovingWeight> weights = std::move(open_);
    const PieceReader reader = [&](size_t weight, int64_t offset, int64_t bytes,
                                   std::vector<absl::Span<const uint8_t>>& parts) {
      return ReadParts(items_[weights[weight].item], offset, bytes, parts);
    };
    WeightTransferCall call(link_, number_, items_, options_.cancel);
    const int64_t before = done_;
    call.progress = [this, before](int64_t bytes) { Report(before + bytes); };
    ASSIGN_OR_RETURN(TransferOutcome outcome, call.FromHere(weights, reader, [this](int64_t bytes) {
      result_.bytes_streamed += bytes;
    }));
    open_ = std::move(outcome.failed);
    if (open_.empty()) {
      Report(total_);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(worker_.connection().Explain(outcome.giver));
    if (attempt == kAttempts) {
      return worker_.connection().Error(absl::StatusCode::kDataLoss, kTakeVerb, open_[0].failure);
    }
    result_.remarks.push_back(absl::StrCat(open_[0].failure, "; they are sent again"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RemoteWeights> LoadRemoteWeights(FleetLink& link, int32_t worker,
                                                absl::Span<const RemoteWeightFile> files,
                                                absl::Span<const RemoteWeightItem> items,
                                                const SliceReader& reader,
                                                const LoadRemoteWeightsOptions& options) {
  Loader loader(link, worker, files, items, reader, options);
  RETURN_IF_ERROR(loader.Load());
  RETURN_IF_ERROR(loader.FromPeers());
  RETURN_IF_ERROR(loader.FromHere());
  return loader.TakeResult();
}

}  // namespace weft
