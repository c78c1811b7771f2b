// The calls that bring weights here, and from here to others.
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "rpc_backend/protocol/clean_text.h"
#include "rpc_backend/protocol/content_digest.h"
#include "rpc_backend/protocol/grpc_status.h"
#include "rpc_backend/protocol/limits.h"
#include "rpc_backend/protocol/manifest_codec.h"
#include "worker/service/control_service.h"
#include "worker/service/requests.h"
#include "worker/weights/weight_exchange.h"

namespace weft {
namespace {

// Manifests that name what to look for, and no device.
constexpr int32_t kAnyDevice = static_cast<int32_t>(WireLimits().devices) + 1;

// Between two progress replies.
constexpr std::chrono::milliseconds kProgressPeriod{100};

void CountLoad(const LoadManifest& manifest, const LoadResult& result, bool has_cache,
               WorkerMeter& meter) {
  std::map<int32_t, int64_t> bytes;
  for (const WeightEntry& weight : manifest.weights) {
    for (const FileSlice& slice : weight.slices) bytes[weight.weight] += slice.bytes;
  }
  int64_t hits = 0;
  int64_t misses = 0;
  for (const LoadedItem& item : result.items) {
    const int64_t size = bytes[item.weight];
    switch (item.origin) {
      case WeightOrigin::kFile:
        meter.CountWeights(WeightSource::kFile, size);
        break;
      case WeightOrigin::kCache:
        meter.CountWeights(WeightSource::kCache, size);
        ++hits;
        break;
      case WeightOrigin::kStream:
        meter.CountWeights(WeightSource::kCache, item.here);  // of a load that was cut off
        ++misses;
        break;
    }
  }
  if (has_cache) meter.CountCache(hits, misses);
}

WeightTransfer TransferOf(const Epoch& epoch, int32_t peer, int64_t number,
                          const grpc::ServerContext& context) {
  WeightTransfer transfer;
  transfer.epoch = epoch.number();
  transfer.peer = peer;
  transfer.observer = epoch.coordinator_number();
  transfer.number = number;
  transfer.stop = [&context] { return context.IsCancelled(); };
  return transfer;
}

template <typename Request>
absl::StatusOr<LoadManifest> ManifestOf(const Request& request, int32_t devices) {
  RETURN_IF_ERROR(CheckContent("the list of weights", request.manifest(), request.sha256()));
  return DecodeLoadManifest(request.manifest(), devices);
}

}  // namespace

grpc::Status ControlService::LoadWeights(grpc::ServerContext* context,
                                         const proto::LoadWeightsRequest* request,
                                         grpc::ServerWriter<proto::LoadWeightsReply>* writer) {
  const auto run = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<weft::Session> session, Enter(*request));
    ASSIGN_OR_RETURN(const LoadManifest manifest,
                     ManifestOf(*request, static_cast<int32_t>(parts_.devices.size())));
    Clock::TimePoint last = clock_.Now();
    proto::LoadWeightsReply reply;
    const auto progress = [&](int64_t done, int64_t total) {
      if (context->IsCancelled()) return false;
      const Clock::TimePoint now = clock_.Now();
      if (now - last < kProgressPeriod) return true;
      last = now;
      reply.set_bytes_done(done);
      reply.set_bytes_total(total);
      return writer->Write(reply);
    };
    ASSIGN_OR_RETURN(const LoadResult result,
                     session->weights().Load(manifest, request->ignore_files(), progress));
    if (parts_.meter != nullptr)
      CountLoad(manifest, result, parts_.cache != nullptr, *parts_.meter);
    FillLoadResult(result, reply);
    if (!writer->Write(reply)) return absl::CancelledError("the coordinator is gone");
    return absl::OkStatus();
  };
  return ToGrpc(run());
}

grpc::Status ControlService::FindWeights(grpc::ServerContext*,
                                         const proto::FindWeightsRequest* request,
                                         proto::FindWeightsReply* reply) {
  const auto run = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<weft::Session> session, Enter(*request));
    ASSIGN_OR_RETURN(const LoadManifest manifest, ManifestOf(*request, kAnyDevice));
    const WeightSources sources = session->weights().Sources(manifest, request->ignore_files());
    for (const WeightEntry& weight : manifest.weights) {
      if (sources.Has(weight)) reply->add_weights(weight.weight);
    }
    return absl::OkStatus();
  };
  return ToGrpc(run());
}

grpc::Status ControlService::GiveWeights(grpc::ServerContext* context,
                                         const proto::GiveWeightsRequest* request,
                                         proto::GiveWeightsReply* reply) {
  const auto run = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<weft::Session> session, Enter(*request));
    ASSIGN_OR_RETURN(const std::shared_ptr<Epoch> epoch, session->epoch());
    ASSIGN_OR_RETURN(const LoadManifest manifest, ManifestOf(*request, kAnyDevice));
    const WeightSources sources = session->weights().Sources(manifest, request->ignore_files());
    ASSIGN_OR_RETURN(
        const int64_t bytes,
        weft::GiveWeights(epoch->port(),
                          TransferOf(*epoch, request->peer(), request->transfer(), *context),
                          sources, manifest, request->starts()));
    reply->set_bytes(bytes);
    return absl::OkStatus();
  };
  return ToGrpc(run());
}

grpc::Status ControlService::TakeWeights(grpc::ServerContext* context,
                                         const proto::TakeWeightsRequest* request,
                                         grpc::ServerWriter<proto::TakeWeightsReply>* writer) {
  const auto run = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<weft::Session> session, Enter(*request));
    ASSIGN_OR_RETURN(const std::shared_ptr<Epoch> epoch, session->epoch());
    std::vector<WeightToTake> weights;
    for (const proto::TakenWeight& weight : request->weights()) {
      const auto count = static_cast<int64_t>(weight.digests().size() / Sha256Digest::kBytes);
      auto digests = SplitDigests(weight.digests(), count);
      if (!digests) return absl::InvalidArgumentError("digests that are none");
      weights.push_back({weight.weight(), *std::move(digests)});
    }
    WeightTransfer transfer = TransferOf(*epoch, request->peer(), request->transfer(), *context);
    transfer.with_digests = request->with_digests();
    const WeightSource source = request->peer() == epoch->coordinator_number()
                                    ? WeightSource::kCoordinator
                                    : WeightSource::kPeer;
    proto::TakeWeightsReply reply;
    Clock::TimePoint last = clock_.Now();
    const auto progress = [&](int64_t bytes) {
      reply.set_bytes_done(reply.bytes_done() + bytes);
      if (parts_.meter != nullptr) parts_.meter->CountWeights(source, bytes);
      const Clock::TimePoint now = clock_.Now();
      if (now - last < kProgressPeriod) return;
      last = now;
      writer->Write(reply);
    };
    ASSIGN_OR_RETURN(
        const std::vector<FailedTake> failed,
        weft::TakeWeights(epoch->port(), transfer, session->weights().open(), weights, progress));
    reply.set_finished(true);
    for (const FailedTake& take : failed) {
      proto::FailedWeight& message = *reply.add_failed();
      message.set_weight(take.weight);
      message.set_here(take.here);
      message.set_reason(CleanText(take.reason, WireLimits().reason_bytes));
    }
    if (!writer->Write(reply)) return absl::CancelledError("the coordinator is gone");
    return absl::OkStatus();
  };
  return ToGrpc(run());
}

}  // namespace weft
