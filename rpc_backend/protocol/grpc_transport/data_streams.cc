#include "rpc_backend/protocol/grpc_transport/data_streams.h"

#include <grpcpp/create_channel.h>

#include <utility>

#include "absl/memory/memory.h"
#include "common/base/absl_view.h"
#include "rpc_backend/protocol/grpc_calls.h"
#include "rpc_backend/protocol/status_codec.h"

namespace weft {
namespace {

constexpr std::string_view kClosed = "the connection was closed";

}  // namespace

// --- ClientDataStream ---

ClientDataStream::ClientDataStream(std::shared_ptr<GrpcPortCore> core, int32_t peer,
                                   const std::string& target,
                                   const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : core_(std::move(core)), peer_(peer) {
  stub_ =
      proto::WorkerData::NewStub(grpc::CreateCustomChannel(target, credentials, OwnConnection()));
}

void ClientDataStream::Start(std::shared_ptr<GrpcPortCore> core, const PortPeer& peer,
                             const Place& place, const PeerNonce& nonce,
                             const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  auto owned = absl::WrapUnique(
      new ClientDataStream(std::move(core), peer.number, place.target, credentials));
  ClientDataStream& stream = *owned;
  stream.self_ = std::move(owned);
  stream.stub_->async()->Messages(&stream.context_, &stream);
  stream.StartRead(&stream.frame_);
  stream.core_->Open(peer, place.number, place.text, nonce, stream);
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
  stream->registry_->AddStranger(*stream, context.peer());
  stream->StartTimer();
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

void ServerDataStream::StartTimer() {
  {
    MutexLock lock(watched_->mutex);
    watched_->stream = this;
  }
  timer_.Set(GrpcDeadlineIn(kProofTime), [watched = watched_](bool in_time) {
    MutexLock lock(watched->mutex);
    if (!in_time || watched->stream == nullptr) return;
    ServerDataStream& stream = *watched->stream;
    stream.registry_->LogRefusal(stream.context_.peer(), "no proof of the session's key in time");
    stream.context_.TryCancel();
  });
}

void ServerDataStream::StopTimer() {
  registry_->RemoveStranger(*this);
  {
    MutexLock lock(watched_->mutex);
    watched_->stream = nullptr;
  }
  timer_.Cancel();
}

void ServerDataStream::Refuse(const absl::Status& why) {
  greeted_ = nullptr;
  registry_->LogRefusal(context_.peer(), StdView(why.message()));
  Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, std::string(why.message())));
}

void ServerDataStream::TakeHello() {
  const std::shared_ptr<GrpcPortCore> core = registry_->Find(frame_.port());
  absl::StatusOr<proto::DataMessage> challenge =
      core == nullptr ? absl::UnavailableError("no such port is open here")
                      : core->Challenge(frame_, handshake_);
  if (!challenge.ok()) return Refuse(challenge.status());
  greeted_ = core;
  peer_ = handshake_.connector;
  challenge_ = *std::move(challenge);
  frame_.Clear();
  StartWrite(&challenge_);  // and reads on when it is written
}

void ServerDataStream::TakeProof() {
  StopTimer();
  core_ = std::exchange(greeted_, nullptr);  // before it is accepted: then it may be written to
  const absl::Status status = core_->Accept(handshake_, frame_, *this);
  handshake_ = {};
  if (!status.ok()) {
    core_ = nullptr;
    return Refuse(status);
  }
  frame_.Clear();
  StartRead(&frame_);
}

void ServerDataStream::OnReadDone(bool ok) {
  if (core_ == nullptr) {
    if (!ok) {
      Finish(grpc::Status::OK);
    } else if (greeted_ == nullptr) {
      TakeHello();
    } else {
      TakeProof();
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
  if (greeted_ != nullptr) {  // the challenge
    if (ok) {
      StartRead(&frame_);
    } else {
      Finish(grpc::Status::OK);
    }
    return;
  }
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
  StopTimer();
  const std::shared_ptr<GrpcPortCore> core = core_;
  { const std::unique_ptr<ServerDataStream> ends_here = std::move(self_); }
  if (core != nullptr) core->Gone(nullptr);
}

}  // namespace weft
