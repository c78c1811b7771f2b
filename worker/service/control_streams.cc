// The calls of the control plane that stream.
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "rpc_backend/protocol/manifest_codec.h"
#include "rpc_backend/protocol/message_check.h"
#include "worker/service/control_service.h"
#include "worker/service/grpc_status.h"
#include "worker/service/requests.h"

namespace weft {
namespace {

using SessionStream = grpc::ServerReaderWriter<proto::SessionReply, proto::SessionRequest>;

// Progress replies, and what is done between two of them.
constexpr std::chrono::milliseconds kProgressPeriod{100};

// Ends a stream from outside: the handler may sit in Read for ever.
class StreamEnder {
 public:
  StreamEnder(grpc::ServerContext& context, SessionStream& stream)
      : context_(context), stream_(stream) {}

  bool Write(const proto::SessionReply& reply) {
    MutexLock lock(mutex_);
    return !over_ && stream_.Write(reply);
  }
  void End(const std::string& farewell) {
    MutexLock lock(mutex_);
    if (over_) return;
    proto::SessionReply reply;
    reply.set_farewell(farewell);
    stream_.Write(reply);
    context_.TryCancel();
  }
  // The handler returns: what it was given is gone.
  void Close() {
    MutexLock lock(mutex_);
    over_ = true;
  }

 private:
  Mutex mutex_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ServerContext& context_;
  SessionStream& stream_;
};

}  // namespace

grpc::Status ControlService::Session(grpc::ServerContext* context, SessionStream* stream) {
  proto::SessionRequest request;
  if (!stream->Read(&request)) return grpc::Status::OK;
  const absl::Status checked = CheckMessage(request);
  if (!checked.ok()) return ToGrpc(checked);
  const auto ender = std::make_shared<StreamEnder>(*context, *stream);
  const absl::StatusOr<std::shared_ptr<weft::Session>> session = sessions_.Open(
      request.coordinator(), [ender](const std::string& farewell) { ender->End(farewell); });
  if (!session.ok()) return ToGrpc(session.status());
  const int64_t id = (*session)->id();
  parts_.logger->Info(
      StdView(absl::StrCat("session ", id, " of ", (*session)->coordinator(), " opened")));

  proto::SessionReply reply;
  reply.set_session(id);
  bool open = ender->Write(reply);
  while (open && stream->Read(&request)) {
    if (!CheckMessage(request).ok()) break;
    sessions_.Touch(id);
    reply.Clear();
    reply.set_ping(request.ping());
    open = ender->Write(reply);
  }
  ender->Close();
  sessions_.Remove(id, absl::UnavailableError("the coordinator is gone"));
  parts_.logger->Info(StdView(absl::StrCat("session ", id, " closed")));
  return grpc::Status::OK;
}

grpc::Status ControlService::LoadWeights(grpc::ServerContext* context,
                                         const proto::LoadWeightsRequest* request,
                                         grpc::ServerWriter<proto::LoadWeightsReply>* writer) {
  const auto run = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<weft::Session> session, Enter(*request));
    ASSIGN_OR_RETURN(
        const LoadManifest manifest,
        DecodeLoadManifest(request->manifest(), static_cast<int32_t>(parts_.devices.size())));
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
    FillLoadResult(result, reply);
    if (!writer->Write(reply)) return absl::CancelledError("the coordinator is gone");
    return absl::OkStatus();
  };
  return ToGrpc(run());
}

grpc::Status ControlService::SendWeights(grpc::ServerContext*,
                                         grpc::ServerReader<proto::WeightChunk>* reader,
                                         proto::SendWeightsReply* reply) {
  const auto run = [&]() -> absl::Status {
    proto::WeightChunk chunk;
    std::shared_ptr<weft::Session> session;
    int64_t bytes = 0;
    while (reader->Read(&chunk)) {
      if (session == nullptr) {
        ASSIGN_OR_RETURN(session, Enter(chunk));
      } else {
        RETURN_IF_ERROR(CheckMessage(chunk));
      }
      RETURN_IF_ERROR(
          session->weights().Write(chunk.weight(), chunk.offset(), BytesOf(chunk.data())));
      bytes += static_cast<int64_t>(chunk.data().size());
      if (chunk.digest().empty()) continue;
      RETURN_IF_ERROR(
          session->weights().Finish(chunk.weight(), *Sha256Digest::FromRaw(chunk.digest())));
    }
    reply->set_bytes(bytes);
    return absl::OkStatus();
  };
  return ToGrpc(run());
}

}  // namespace weft
