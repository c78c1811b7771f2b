#include "rpc_backend/client/remote_weights.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/digest/sha256.h"
#include "rpc_backend/client/remote_buffer.h"
#include "rpc_backend/client/remote_device.h"
#include "rpc_backend/client/weight_stream.h"
#include "rpc_backend/client/worker_connection.h"
#include "rpc_backend/protocol/manifest_codec.h"

namespace weft {
namespace {

constexpr std::string_view kLoadVerb = "LoadWeights";
constexpr std::string_view kSendVerb = "SendWeights";

int64_t ContentBytes(const RemoteWeightItem& item) {
  int64_t bytes = 0;
  for (const RemoteWeightSlice& slice : item.slices) bytes += slice.bytes;
  return bytes;
}

// The manifest as it travels, with the checks that the worker will make.
absl::StatusOr<std::string> MakeManifest(absl::Span<const RemoteWeightFile> files,
                                         absl::Span<const RemoteWeightItem> items,
                                         int32_t device_count, const WireLimits& limits) {
  LoadManifest manifest;
  for (const RemoteWeightFile& file : files) {
    const std::optional<Sha256Digest> identity = Sha256Digest::FromRaw(file.identity);
    if (!identity.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("the identity of ", file.path, " is none"));
    }
    manifest.files.push_back({file.path, file.size, *identity});
  }
  for (const RemoteWeightItem& item : items) {
    WeightEntry& entry = manifest.weights.emplace_back();
    entry.weight = item.weight;
    entry.device = item.device;
    entry.bytes = item.reserve_bytes;
    entry.name = item.name;
    for (const RemoteWeightSlice& slice : item.slices) {
      entry.slices.push_back({slice.file, slice.offset, slice.bytes});
    }
  }
  std::string bytes = EncodeLoadManifest(manifest);
  RETURN_IF_ERROR(DecodeLoadManifest(bytes, device_count, limits).status());
  return bytes;
}

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

class Loader {
 public:
  Loader(RemoteWorker& worker, absl::Span<const RemoteWeightItem> items, const SliceReader& reader,
         const LoadRemoteWeightsOptions& options)
      : worker_(worker),
        connection_(worker.connection()),
        items_(items),
        reader_(reader),
        options_(options) {
    for (const RemoteWeightItem& item : items_) total_ += ContentBytes(item);
  }

  absl::Status Load(std::string manifest);
  absl::Status Stream();
  RemoteWeights TakeResult() { return std::move(result_); }

 private:
  void Report(int64_t done) {
    done_ = std::clamp(done, done_, total_);
    if (options_.progress) options_.progress({done_, total_});
  }
  bool Cancelled() const { return options_.cancel != nullptr && options_.cancel->load(); }
  absl::Status TakeLoaded(const proto::LoadWeightsReply& reply);
  // The buffers that the handles name; of weights in one, the largest end is its size.
  absl::Status MakeBuffers(const proto::LoadWeightsReply& reply);
  absl::Status SendWeight(const RemoteWeightItem& item, WorkerConnection::Call& call,
                          WeightStream& stream);
  absl::Status SendChunk(WorkerConnection::Call& call, WeightStream& stream);

  RemoteWorker& worker_;
  WorkerConnection& connection_;
  const absl::Span<const RemoteWeightItem> items_;
  const SliceReader& reader_;
  const LoadRemoteWeightsOptions& options_;
  int64_t total_ = 0;
  int64_t done_ = 0;
  RemoteWeights result_;
  proto::WeightChunk chunk_;  // its memory is used again
};

absl::Status Loader::Load(std::string manifest) {
  connection_.FlushFrees();
  proto::LoadWeightsRequest request;
  request.set_session(connection_.session());
  request.set_manifest(std::move(manifest));
  request.set_ignore_files(options_.ignore_files);
  WorkerConnection::Call call(connection_, connection_.options().disk_timeout, options_.cancel);
  const auto stream = connection_.stub().LoadWeights(&call.context(), request);
  proto::LoadWeightsReply reply;
  absl::Status taken;
  bool finished = false;
  while (taken.ok() && stream->Read(&reply)) {
    call.Moved();
    taken = connection_.CheckReply(kLoadVerb, reply);
    if (!taken.ok()) break;
    if (!reply.remark().empty() &&
        (result_.remarks.empty() || result_.remarks.back() != reply.remark())) {
      result_.remarks.push_back(reply.remark());
    }
    if (reply.finished()) {
      taken = finished ? connection_.Nonsense(kLoadVerb, "it finished twice") : TakeLoaded(reply);
      finished = true;
    } else {
      Report(reply.bytes_done());
    }
  }
  if (!taken.ok()) call.context().TryCancel();
  const grpc::Status status = stream->Finish();
  RETURN_IF_ERROR(taken);
  RETURN_IF_ERROR(call.Result(kLoadVerb, status));
  if (!finished) return connection_.Nonsense(kLoadVerb, "it ended without a result");
  return absl::OkStatus();
}

absl::Status Loader::TakeLoaded(const proto::LoadWeightsReply& reply) {
  if (reply.weights_size() != static_cast<int>(items_.size())) {
    return connection_.Nonsense(
        kLoadVerb, absl::StrCat(reply.weights_size(), " weights instead of ", items_.size()));
  }
  RETURN_IF_ERROR(MakeBuffers(reply));
  int64_t here = total_;
  for (int i = 0; i < reply.weights_size(); ++i) {
    if (result_.weights[i].source == RemoteWeightSource::kStream) here -= ContentBytes(items_[i]);
  }
  Report(here);
  return absl::OkStatus();
}

absl::Status Loader::MakeBuffers(const proto::LoadWeightsReply& reply) {
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
    result_.buffers.push_back(std::make_unique<RemoteBuffer>(
        worker_.shared_connection(), *worker_.remote_devices()[extent.device], handle, extent.bytes,
        BufferUsage::kWeights));
    extent.buffer = result_.buffers.back().get();
  }
  for (const proto::LoadedWeight& loaded : reply.weights()) {
    result_.weights.push_back({loaded.weight(), extents.at(loaded.buffer()).buffer, loaded.offset(),
                               *SourceOf(loaded.source())});
  }
  return absl::OkStatus();
}

absl::Status Loader::Stream() {
  const auto open = [](const RemoteWeight& weight) {
    return weight.source == RemoteWeightSource::kStream;
  };
  if (std::none_of(result_.weights.begin(), result_.weights.end(), open)) return absl::OkStatus();
  WorkerConnection::Call call(connection_, connection_.options().stall_timeout, options_.cancel);
  WeightStream stream(connection_.weights_stub(), call.context());
  chunk_.set_session(connection_.session());
  absl::Status sent;
  for (size_t i = 0; i < items_.size() && sent.ok(); ++i) {
    if (open(result_.weights[i])) sent = SendWeight(items_[i], call, stream);
  }
  // ABORTED: the stream is broken, and its status says why.
  if (!sent.ok() && !absl::IsAborted(sent)) call.context().TryCancel();
  const absl::Status finished = call.Result(kSendVerb, stream.Finish());
  const proto::SendWeightsReply& reply = stream.reply();
  if (!sent.ok() && !absl::IsAborted(sent)) return sent;
  RETURN_IF_ERROR(finished);
  RETURN_IF_ERROR(connection_.CheckReply(kSendVerb, reply));
  if (!sent.ok() || reply.bytes() != result_.bytes_streamed) {
    return connection_.Nonsense(
        kSendVerb, absl::StrCat("it took ", reply.bytes(), " bytes of ", result_.bytes_streamed));
  }
  return absl::OkStatus();
}

absl::Status Loader::SendChunk(WorkerConnection::Call& call, WeightStream& stream) {
  if (Cancelled()) {
    return connection_.Error(absl::StatusCode::kCancelled, kSendVerb, "cancelled");
  }
  if (!stream.Write(chunk_)) return absl::AbortedError("the stream is broken");
  call.Moved();
  chunk_.clear_session();
  result_.bytes_streamed += static_cast<int64_t>(chunk_.data().size());
  return absl::OkStatus();
}

absl::Status Loader::SendWeight(const RemoteWeightItem& item, WorkerConnection::Call& call,
                                WeightStream& stream) {
  const int64_t content = ContentBytes(item);
  const int64_t chunk_bytes = connection_.limits().chunk_bytes;
  Sha256 digest;
  int64_t offset = 0;
  chunk_.set_weight(item.weight);
  chunk_.clear_digest();
  for (const RemoteWeightSlice& slice : item.slices) {
    for (int64_t done = 0; done < slice.bytes;) {
      const int64_t piece = std::min(slice.bytes - done, chunk_bytes);
      ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                       reader_({slice.file, slice.offset + done, piece}));
      if (static_cast<int64_t>(bytes.size()) != piece) {
        return absl::DataLossError(absl::StrCat("weight ", item.weight, " (", item.name, "): read ",
                                                bytes.size(), " bytes instead of ", piece));
      }
      digest.Update(bytes);
      chunk_.set_offset(offset);
      chunk_.set_data(bytes.data(), bytes.size());
      done += piece;
      offset += piece;
      if (offset == content) chunk_.set_digest(digest.Finish().Raw());
      RETURN_IF_ERROR(SendChunk(call, stream));
      Report(done_ + piece);
    }
  }
  if (content > 0) return absl::OkStatus();
  chunk_.set_offset(0);
  chunk_.clear_data();
  chunk_.set_digest(digest.Finish().Raw());
  return SendChunk(call, stream);
}

}  // namespace

absl::StatusOr<RemoteWeights> LoadRemoteWeights(RemoteWorker& worker,
                                                absl::Span<const RemoteWeightFile> files,
                                                absl::Span<const RemoteWeightItem> items,
                                                const SliceReader& reader,
                                                const LoadRemoteWeightsOptions& options) {
  WorkerConnection& connection = worker.connection();
  absl::StatusOr<std::string> manifest = MakeManifest(
      files, items, static_cast<int32_t>(worker.devices().size()), connection.limits());
  if (!manifest.ok()) {
    return connection.Error(manifest.status().code(), kLoadVerb,
                            StdView(manifest.status().message()));
  }
  if (static_cast<int64_t>(manifest->size()) > connection.limits().embedded_message_bytes) {
    return connection.Error(absl::StatusCode::kResourceExhausted, kLoadVerb,
                            "the list of weights is too long to send");
  }
  Loader loader(worker, items, reader, options);
  RETURN_IF_ERROR(loader.Load(*std::move(manifest)));
  RETURN_IF_ERROR(loader.Stream());
  return loader.TakeResult();
}

}  // namespace weft
