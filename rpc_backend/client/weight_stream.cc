#include "rpc_backend/client/weight_stream.h"

namespace weft {

WeightStream::WeightStream(proto::Worker::Stub& stub, grpc::ClientContext& context) {
  stub.async()->SendWeights(&context, &reply_, this);
  AddHold();  // Finish lets go: between two writes nothing else keeps the call
  StartCall();
}

bool WeightStream::Write(const proto::WeightChunk& chunk) {
  if (broken_) return false;
  {
    MutexLock lock(mutex_);
    writing_ = true;
  }
  StartWrite(&chunk);
  MutexLock lock(mutex_);
  while (writing_) changed_.Wait(mutex_);
  broken_ = !written_;
  return written_;
}

grpc::Status WeightStream::Finish() {
  if (!broken_) StartWritesDone();
  RemoveHold();
  MutexLock lock(mutex_);
  while (!done_) changed_.Wait(mutex_);
  return status_;
}

void WeightStream::OnWriteDone(bool ok) {
  MutexLock lock(mutex_);
  writing_ = false;
  written_ = ok;
  changed_.NotifyAll();
}

void WeightStream::OnDone(const grpc::Status& status) {
  MutexLock lock(mutex_);
  status_ = status;
  done_ = true;
  changed_.NotifyAll();
}

}  // namespace weft
