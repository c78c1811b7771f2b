// The life of a session.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/absl_view.h"
#include "common/base/mutex.h"
#include "rpc_backend/protocol/grpc_status.h"
#include "rpc_backend/protocol/message_check.h"
#include "worker/service/control_service.h"

namespace weft {
namespace {

using SessionStream = grpc::ServerReaderWriter<proto::SessionReply, proto::SessionRequest>;

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
    reply.set_draining(sessions_.draining());
    open = ender->Write(reply);
  }
  ender->Close();
  sessions_.Remove(id, absl::UnavailableError("the coordinator is gone"));
  parts_.logger->Info(StdView(absl::StrCat("session ", id, " closed")));
  return grpc::Status::OK;
}

}  // namespace weft
