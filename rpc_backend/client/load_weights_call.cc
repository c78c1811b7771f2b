#include "rpc_backend/client/load_weights_call.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/digest/sha256.h"
#include "rpc_backend/client/remote_buffer.h"
#include "rpc_backend/client/remote_device.h"
#include "rpc_backend/client/worker_connection.h"
#include "rpc_backend/protocol/content_digest.h"
#include "rpc_backend/protocol/manifest_codec.h"

namespace weft {
namespace {

constexpr std::string_view kLoadVerb = "LoadWeights";

std::optional<RemoteWeightSource> SourceOf(proto::WeightSource source) {
  switch (source) {
    case proto::WEIGHT_SOURCE_FILE:
      return RemoteWeightSource::kFile;
    case proto::WEIGHT_SOURCE_CACHE:
      return RemoteWeightSource::kCache;
    case proto::WEIGHT_SOURCE_PEER:
      return RemoteWeightSource::kPeer;
    case proto::WEIGHT_SOURCE_STREAM:
      return RemoteWeightSource::kStream;
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<std::string> MakeManifest(RemoteWorker& worker,
                                         absl::Span<const RemoteWeightFile> files,
                                         absl::Span<const RemoteWeightItem> items) {
  LoadManifest manifest;
  for (const RemoteWeightFile& file : files) {
    const std::optional<Sha256Digest> identity = Sha256Digest::FromRaw(file.identity);
    if (!identity.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("the identity of ", file.path, " is none"));
    }
    manifest.files.push_back({file.path, file.size, *identity, file.data_offset});
  }
  for (const RemoteWeightItem& item : items) {
    WeightEntry& entry = manifest.weights.emplace_back();
    entry.weight = item.weight;
    entry.device = item.device;
    entry.bytes = item.reserve_bytes;
    entry.name = item.name;
    entry.digests = item.digests;
    for (const RemoteWeightSlice& slice : item.slices) {
      entry.slices.push_back({slice.file, slice.offset, slice.bytes});
    }
  }
  std::string bytes = EncodeLoadManifest(manifest);
  RETURN_IF_ERROR(DecodeLoadManifest(bytes, static_cast<int32_t>(worker.devices().size()),
                                     worker.connection().limits())
                      .status());
  return bytes;
}

LoadWeightsCall::LoadWeightsCall(RemoteWorker& worker, absl::Span<const RemoteWeightFile> files,
                                 absl::Span<const RemoteWeightItem> items,
                                 const LoadRemoteWeightsOptions& options)
    : worker_(worker),
      connection_(worker.connection()),
      files_(files),
      items_(items),
      options_(options) {}

absl::StatusOr<std::vector<MovingWeight>> LoadWeightsCall::Do(
    RemoteWeights& result, const std::function<void(int64_t bytes)>& report) {
  connection_.FlushFrees();
  absl::StatusOr<std::string> manifest = MakeManifest(worker_, files_, items_);
  if (!manifest.ok()) {
    return connection_.Error(manifest.status().code(), kLoadVerb,
                             StdView(manifest.status().message()));
  }
  if (static_cast<int64_t>(manifest->size()) > connection_.limits().embedded_message_bytes) {
    return connection_.Error(absl::StatusCode::kResourceExhausted, kLoadVerb,
                             "the list of weights is too long to send");
  }
  proto::LoadWeightsRequest request;
  request.set_session(connection_.session());
  request.set_sha256(ContentDigest(*manifest));
  request.set_manifest(*std::move(manifest));
  request.set_ignore_files(options_.ignore_files);
  WorkerConnection::Call call(connection_, connection_.options().disk_timeout, options_.cancel);
  const auto stream = connection_.stub().LoadWeights(&call.context(), request);
  proto::LoadWeightsReply reply;
  absl::StatusOr<std::vector<MovingWeight>> open = std::vector<MovingWeight>();
  bool finished = false;
  while (open.ok() && stream->Read(&reply)) {
    call.Moved();
    if (absl::Status checked = connection_.CheckReply(kLoadVerb, reply); !checked.ok()) {
      open = checked;
      break;
    }
    if (!reply.remark().empty() &&
        (result.remarks.empty() || result.remarks.back() != reply.remark())) {
      result.remarks.push_back(reply.remark());
    }
    if (!reply.finished()) {
      report(reply.bytes_done());
    } else if (finished) {
      open = connection_.Nonsense(kLoadVerb, "it finished twice");
    } else {
      open = TakeLoaded(reply, result);
      finished = true;
    }
  }
  if (!open.ok()) call.context().TryCancel();
  const grpc::Status status = stream->Finish();
  RETURN_IF_ERROR(open.status());
  RETURN_IF_ERROR(call.Result(kLoadVerb, status));
  if (!finished) return connection_.Nonsense(kLoadVerb, "it ended without a result");
  return open;
}

absl::StatusOr<std::vector<MovingWeight>> LoadWeightsCall::TakeLoaded(
    const proto::LoadWeightsReply& reply, RemoteWeights& result) const {
  if (reply.weights_size() != static_cast<int>(items_.size())) {
    return connection_.Nonsense(
        kLoadVerb, absl::StrCat(reply.weights_size(), " weights instead of ", items_.size()));
  }
  RETURN_IF_ERROR(MakeBuffers(reply, result));
  std::vector<MovingWeight> open;
  for (int i = 0; i < reply.weights_size(); ++i) {
    if (result.weights[i].source != RemoteWeightSource::kStream) continue;
    const int64_t here = reply.weights(i).here();
    const int64_t missing = ContentBytes(items_[i]) - here;
    if (missing < 0 || (missing == 0 && here > 0) || here % kWeightPieceBytes != 0) {
      return connection_.Nonsense(
          kLoadVerb, absl::StrCat("weight ", items_[i].weight, " is there up to ", here));
    }
    if (missing > 0) open.push_back({static_cast<size_t>(i), here, {}});
  }
  return open;
}

absl::Status LoadWeightsCall::MakeBuffers(const proto::LoadWeightsReply& reply,
                                          RemoteWeights& result) const {
  struct Extent {
    int32_t device = 0;
    int64_t bytes = 0;
    Buffer* buffer = nullptr;
  };
  std::map<int64_t, Extent> extents;  // by handle
  for (int i = 0; i < reply.weights_size(); ++i) {
    const proto::LoadedWeight& loaded = reply.weights(i);
    const RemoteWeightItem& item = items_[i];
    const std::optional<int64_t> end = CheckedAdd(loaded.offset(), item.reserve_bytes);
    const auto [extent, fresh] = extents.try_emplace(loaded.buffer(), Extent{item.device});
    if (loaded.weight() != item.weight || !end.has_value() || loaded.offset() < 0 ||
        extent->second.device != item.device || !SourceOf(loaded.source()).has_value()) {
      return connection_.Nonsense(
          kLoadVerb, absl::StrCat("entry ", i, " does not tell where weight ", item.weight, " is"));
    }
    extent->second.bytes = std::max(extent->second.bytes, *end);
  }
  for (auto& [handle, extent] : extents) {
    result.buffers.push_back(std::make_unique<RemoteBuffer>(
        worker_.shared_connection(), *worker_.remote_devices()[extent.device], handle, extent.bytes,
        BufferUsage::kWeights));
    extent.buffer = result.buffers.back().get();
  }
  for (const proto::LoadedWeight& loaded : reply.weights()) {
    result.weights.push_back({loaded.weight(), extents.at(loaded.buffer()).buffer, loaded.offset(),
                              *SourceOf(loaded.source())});
  }
  return absl::OkStatus();
}

}  // namespace weft
