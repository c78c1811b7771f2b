#include "rpc_backend/protocol/grpc_transport/data_streams.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>

#include "absl/memory/memory.h"
#include "common/base/absl_view.h"
#include "rpc_backend/protocol/status_codec.h"

namespace weft {
namespace {

constexpr std::string_view kClosed = "the connection was closed";

}  // namespace

// --- ClientDataStream ---

ClientDataStream::ClientDataStream(std::shared_ptr<GrpcPortCore> core, int32_t peer,
                                   const std::string& target)
    : core_(std::move(core)), peer_(peer) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  stub_ = proto::WorkerData::NewStub(
      grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
}

void ClientDataStream::Start(std::shared_ptr<GrpcPortCore> core, const PortPeer& peer, int64_t port,
                             const std::string& target) {
  auto owned = absl::WrapUnique(new ClientDataStream(std::move(core), peer.number, target));
  ClientDataStream& stream = *owned;
  stream.self_ = std::move(owned);
  stream.stub_->async()->Messages(&stream.context_, &stream);
  stream.StartRead(&stream.frame_);
  stream.core_->Open(peer, port, stream);
  stream.StartCall();
}

void ClientDataStream::OnReadDone(bool ok) {
  if (ok && core_->Take(peer_, *this, frame_)) {
    frame_.Clear();
    StartRead(&frame_);
  } else if (!ok) {
    // From here on nothing may be outstanding that keeps OnDone away, which says why.
    core_->StopWriting(peer_, *this);
    context_.TryCancel();  // what was no message ends only this side
  }
}

void ClientDataStream::OnWriteDone(bool ok) {
  if (ok) core_->Written(peer_, *this);
}

void ClientDataStream::OnDone(const grpc::Status& status) {
  const absl::Status why = StatusFromWire(status.error_code(), status.error_message());
  const bool plain = why.ok() || absl::IsCancelled(why);
  core_->Close(peer_, *this, plain ? kClosed : StdView(why.message()));
  const std::shared_ptr<GrpcPortCore> core = core_;
  std::shared_ptr<void> channel = std::move(stub_);
  { const std::unique_ptr<ClientDataStream> ends_here = std::move(self_); }
  core->Gone(std::move(channel));
}

// --- ServerDataStream ---

ServerDataStream* ServerDataStream::Start(std::shared_ptr<GrpcPortRegistry> registry,
                                          grpc::CallbackServerContext& context) {
  auto owned = absl::WrapUnique(new ServerDataStream(std::move(registry), context));
  ServerDataStream* stream = owned.get();
  stream->self_ = std::move(owned);
  stream->StartRead(&stream->frame_);
  return stream;
}

void ServerDataStream::StartFrame(const proto::DataMessage& frame) {
  {
    MutexLock lock(mutex_);
    writing_ = true;
  }
  StartWrite(&frame);
}

void ServerDataStream::TakeHello() {
  peer_ = frame_.from();
  core_ = registry_->Find(frame_.port());  // before it is accepted: then it may be written to
  const absl::Status status = core_ == nullptr ? absl::UnavailableError("no such port is open here")
                                               : core_->Accept(frame_, *this);
  if (!status.ok()) {
    core_ = nullptr;
    Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, std::string(status.message())));
    return;
  }
  frame_.Clear();
  StartRead(&frame_);
}

void ServerDataStream::OnReadDone(bool ok) {
  if (core_ == nullptr) {
    if (ok) {
      TakeHello();
    } else {
      Finish(grpc::Status::OK);
    }
    return;
  }
  if (ok && core_->Take(peer_, *this, frame_)) {
    frame_.Clear();
    StartRead(&frame_);
    return;
  }
  core_->Close(peer_, *this, kClosed);
  bool finish = false;
  {
    MutexLock lock(mutex_);
    over_ = true;
    finish = !writing_;
  }
  if (finish) Finish(grpc::Status::OK);
}

void ServerDataStream::OnWriteDone(bool ok) {
  bool finish = false;
  {
    MutexLock lock(mutex_);
    writing_ = false;
    finish = over_;
  }
  if (finish) {
    Finish(grpc::Status::OK);
  } else if (ok) {
    core_->Written(peer_, *this);
  }
}

void ServerDataStream::OnDone() {
  const std::shared_ptr<GrpcPortCore> core = core_;
  { const std::unique_ptr<ServerDataStream> ends_here = std::move(self_); }
  if (core != nullptr) core->Gone(nullptr);
}

}  // namespace weft
