// The calls of a FakeWorker's control plane about weights, and what they move over its data plane.
#include <algorithm>
#include <utility>

#include "rpc_backend/protocol/manifest_codec.h"
#include "rpc_backend/protocol/weight_pieces.h"
#include "tests/unit/rpc_backend/client/fake_worker.h"

namespace weft {

grpc::Status FakeWorker::LoadWeights(grpc::ServerContext* context,
                                     const proto::LoadWeightsRequest* request,
                                     grpc::ServerWriter<proto::LoadWeightsReply>* writer) {
  return Handle("LoadWeights", context, [&] {
    const auto manifest = DecodeLoadManifest(request->manifest(), 3);
    if (!manifest.ok()) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                          std::string(manifest.status().message()));
    }
    proto::LoadWeightsReply reply;
    reply.set_bytes_done(1);
    reply.set_bytes_total(1000000);
    writer->Write(reply);
    const bool seen = files_visible && !request->ignore_files();
    reply.Clear();
    reply.set_finished(true);
    if (!seen) reply.set_remark("no such file");
    {
      MutexLock lock(mutex_);
      for (const WeightEntry& entry : manifest->weights) {
        proto::LoadedWeight& loaded = *reply.add_weights();
        loaded.set_weight(entry.weight);
        loaded.set_buffer(next_);
        loaded.set_offset(64);
        loaded.set_source(seen ? proto::WEIGHT_SOURCE_FILE : proto::WEIGHT_SOURCE_STREAM);
        if (!seen && here.contains(entry.weight)) loaded.set_here(here[entry.weight]);
        content_bytes_[entry.weight] = ContentBytes(entry);
        buffers_[next_++] = std::string(static_cast<size_t>(entry.bytes) + 64, '\0');
      }
    }
    if (edit_loaded) edit_loaded(reply);
    writer->Write(reply);
    return grpc::Status::OK;
  });
}

grpc::Status FakeWorker::FindWeights(grpc::ServerContext* context,
                                     const proto::FindWeightsRequest* request,
                                     proto::FindWeightsReply* reply) {
  return Handle("FindWeights", context, [&] {
    const auto manifest = DecodeLoadManifest(request->manifest(), 3);
    if (!manifest.ok()) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "manifest");
    for (const WeightEntry& entry : manifest->weights) {
      if (stored.contains(entry.weight)) reply->add_weights(entry.weight);
    }
    if (edit_found) edit_found(*reply);
    return grpc::Status::OK;
  });
}

grpc::Status FakeWorker::GiveWeights(grpc::ServerContext* context,
                                     const proto::GiveWeightsRequest* request,
                                     proto::GiveWeightsReply*) {
  return Handle("GiveWeights", context, [&] {
    const auto manifest = DecodeLoadManifest(request->manifest(), 3);
    Plane* plane = nullptr;
    {
      MutexLock lock(mutex_);
      plane = planes_.back().get();
    }
    WeightTransfer transfer{.epoch = plane->epoch,
                            .peer = request->peer(),
                            .number = request->transfer(),
                            .stop = [context] { return context->IsCancelled(); }};
    std::vector<WeightSpan> spans;
    std::vector<const std::string*> contents;
    for (int i = 0; i < request->starts_size(); ++i) {
      const WeightEntry& entry = manifest->weights[static_cast<size_t>(i)];
      spans.push_back({ContentBytes(entry), request->starts(i)});
      contents.push_back(&stored.at(entry.weight));
    }
    const PieceReader reader = [&contents](size_t weight, int64_t offset, int64_t bytes,
                                           std::vector<absl::Span<const uint8_t>>& parts) {
      const std::string& content = *contents[weight];
      if (offset + bytes > static_cast<int64_t>(content.size())) {
        return absl::NotFoundError("it ends here");
      }
      parts.emplace_back(reinterpret_cast<const uint8_t*>(content.data()) + offset, bytes);
      return absl::OkStatus();
    };
    const absl::Status status = SendWeightPieces(*plane->port, transfer, spans, reader, nullptr);
    return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                        std::string(status.message()));
  });
}

void FakeWorker::TakePiece(const proto::TakenWeight& wanted, const WeightPiece& piece,
                           bool with_digests, std::map<int32_t, std::string>& failures) {
  const auto bytes = absl::MakeConstSpan(piece.payload).first(static_cast<size_t>(piece.bytes));
  const size_t at = static_cast<size_t>(piece.offset / kWeightPieceBytes) * Sha256Digest::kBytes;
  const auto known = Sha256Digest::FromRaw(
      std::string_view(wanted.digests()).substr(std::min(at, wanted.digests().size()), 32));
  const bool checked = known.has_value() || with_digests;
  const bool right = Sha256::Of(bytes) == known.value_or(piece.digest);
  MutexLock lock(mutex_);
  if (failures.contains(wanted.weight())) return;
  if (!checked || !right || damaged_pieces > 0) {
    failures[wanted.weight()] = checked ? "a piece is damaged" : "a piece without a digest";
    damaged_pieces = std::max(0, damaged_pieces - 1);
    return;
  }
  weights_[wanted.weight()].append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  here[wanted.weight()] = piece.offset + piece.bytes;
}

grpc::Status FakeWorker::TakeWeights(grpc::ServerContext* context,
                                     const proto::TakeWeightsRequest* request,
                                     grpc::ServerWriter<proto::TakeWeightsReply>* writer) {
  return Handle("TakeWeights", context, [&] {
    Plane* plane = nullptr;
    std::vector<WeightSpan> spans;
    {
      MutexLock lock(mutex_);
      plane = planes_.back().get();
      for (const proto::TakenWeight& weight : request->weights()) {
        spans.push_back({content_bytes_[weight.weight()], here[weight.weight()]});
      }
    }
    WeightTransfer transfer{.epoch = plane->epoch,
                            .peer = request->peer(),
                            .observer = plane->coordinator,
                            .number = request->transfer(),
                            .with_digests = request->with_digests(),
                            .stop = [context] { return context->IsCancelled(); }};
    std::map<int32_t, std::string> failures;
    proto::TakeWeightsReply reply;
    const absl::Status status =
        given_up_takes-- > 0
            ? absl::UnavailableError("the giver is lost")
            : ReceiveWeightPieces(*plane->port, transfer, spans, [&](const WeightPiece& piece) {
                TakePiece(request->weights(static_cast<int>(piece.weight)), piece,
                          request->with_digests(), failures);
                reply.set_bytes_done(reply.bytes_done() + piece.bytes);
                writer->Write(reply);
              });
    reply.set_finished(true);
    for (int i = 0; i < request->weights_size(); ++i) {
      const int32_t id = request->weights(i).weight();
      MutexLock lock(mutex_);
      if (here[id] == spans[static_cast<size_t>(i)].bytes) continue;
      proto::FailedWeight& failed = *reply.add_failed();
      failed.set_weight(id);
      failed.set_here(here[id]);
      failed.set_reason(failures.contains(id) ? failures[id] : std::string(status.message()));
    }
    if (edit_taken) edit_taken(reply);
    writer->Write(reply);
    return grpc::Status::OK;
  });
}

}  // namespace weft
